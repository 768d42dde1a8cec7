// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/model/notation"
)

// Bounds limit the faults of the network, each in total.
type Bounds struct {
	Lose      int // packets lost
	Duplicate int // packets delivered twice
	Reorder   int // packets delivered before the one ahead of them
	Delay     int // timers that fire while packets are in flight, or something is being stored
	PortFull  int // times that the queue of a port is full
	Restart   int // switches that restart
	Meet      int // pairs of neighbouring switches that begin another session
	Store     int // records that are stored without need
	Idle      int // fast paths that are taken back without a reason of the switch's: no data has come for a while, or a port changes
}

// Config is one scenario.
type Config struct {
	Name       string
	Tree       Tree
	Receivers  int // 2 or 3
	SendWindow int // send window of a source, in PSNs

	// Homes are the switches of the hosts, where not the tree's own.
	Homes []int

	Messages []int // packets of each message of A
	Second   []int // the same for B, which is a source too if Second is not empty
	Turns    bool  // B begins only when it has received all of A's stream
	Fair     bool  // a source's turn ends with its message once another source waits
	Write    bool  // RDMA WRITE to symmetric windows instead of SEND

	// Reports says that the reports of switches to each other are packets on the links; else
	// they arrive at once.
	Reports bool

	// Personalities and first PSNs by host; missing ones are those of host 0.
	Hosts []Host

	Bounds
	Withheld int // receives that the first receiver has not posted in the first state
	// Policy is the group's. WithDeadAfter sets its DeadAfter.
	Policy        mcast.Policy
	Quorum        int // receivers of mcast.Quorum
	WithDeadAfter bool
	// HostsMayDie lets the last receiver die at any moment.
	HostsMayDie bool
	// ShortBuffer, if not 0, is the number, from 1, of the message for which the last
	// receiver has posted too small a buffer: the receiver answers with a fatal NAK, and
	// its queue pair goes into the error state.
	ShortBuffer int
	// Outside is the number of hosts, the last ones, that are no members in the first
	// state.
	Outside int
	// Probe makes the switches verify the numbering of new receivers. They have verified
	// the first members before the first state.
	Probe bool
	// Changes are made by the control plane, in this order, each at any moment, and at
	// different moments at different switches.
	Changes []Change
	// Stored has the positions of the members stored, in a file that a restart leaves (R83). It
	// needs Probe.
	Stored bool
	// StoredChanges has changes of the members stored like positions. Hosts are told of a change when it
	// is durable; a restart before takes it back, and it is requested again.
	StoredChanges bool
	earlyAnswers  bool // hosts are told of a change when it is made
	// Above is the number of packets by which the first PSN that A is registered with is above that of
	// its queue pair.
	Above int32
	// RestartOf are the switches that may restart, if not all.
	RestartOf []int
	// FileFails lets writes to the file fail unnoticed.
	FileFails bool
	// Timeout is the retransmission timeout of the hosts' queue pairs; 0 is the default
	// here. A source gives up after eight timeouts: 32 ms by default, of which a
	// returning receiver alone takes 20 ms (R73).
	Timeout time.Duration
	// Repair is the number of frames that each switch retains to repair losses; 0: none.
	// ProbeTimeout and Tries are mcast.RepairSpec's; 0 is the default here.
	Repair       int
	ProbeTimeout time.Duration
	Tries        int
	// AckEvery is mcast.GroupSpec's: 0 leaves it to the sources to ask.
	AckEvery uint32
	// PortRoom bounds the copies of retained frames that a driver accepts at a time; 0:
	// no bound.
	PortRoom int
	// FastPath is the number of slots of a fast path; 0: the switches forward everything
	// themselves.
	FastPath int
	// ACKs has the fast path count ACKs (R113).
	ACKs       bool
	faultyACKs faultyACKs
	// idleChores are what a faulty driver does with a fast path that is idle.
	idleChores []choreKind
	// PortFullRoom is the number of copies that a full queue still accepts.
	PortFullRoom int
	// OneLeg restricts faults to the way to B and back. With a large enough store, and
	// without delays, no other host may be affected then.
	OneLeg bool
	// EndlessRetries says that some fair runs are known not to complete; only safety is
	// checked.
	EndlessRetries bool
}

// Host is the configuration of one host.
type Host struct {
	Personality rc.Personality
	SQ, RQ      rocev2.PSN
}

const (
	pmtu    = 256
	timeout = 4 * time.Millisecond
	dead    = 10 * time.Millisecond // 2.5 timeouts
	// deadBelow is the root's DeadAfter: more than twice dead, the time that the switches
	// below may need to detect a dead receiver, and less than a source's eight timeouts.
	deadBelow = 25 * time.Millisecond
	stalled   = 20 * time.Millisecond // longer than a living source is silent
	rnrCode   = 1                     // 10 us
	rnrWait   = 10 * time.Microsecond
	// probeTimeout times tries is less than timeout: the switch repairs before the source
	// does.
	probeTimeout = 500 * time.Microsecond
	tries        = 2
	probeWait    = 500 * time.Microsecond // the time for the answer to a probe
	portFullTime = 200 * time.Microsecond // less than probeTimeout
	frameBytes   = 2048                   // size of a retained frame, as the switch counts it
	groupQPN     = 0x4242
	freshQPN     = 0x10 // the QPN of a host's second queue pair, above its first
	maxHosts     = 8
	noLeg        = mcast.LegID(1<<16 - 1)
	groupKey     = 0xFEED // R_Key of the group's window
	groupVA      = 0x10000
	// restoreTime is the time to which every stored state is restored.
	restoreTime = time.Hour
)

func (c *Config) host(i int) Host {
	if i < len(c.Hosts) {
		return c.Hosts[i]
	}
	if len(c.Hosts) > 0 {
		return c.Hosts[0]
	}
	return Host{}
}

// firstPSN is the first PSN that host i is registered with.
func (c *Config) firstPSN(i int) rocev2.PSN {
	if i == 0 {
		return c.host(0).SQ.Add(c.Above)
	}
	return c.host(i).SQ
}

// firstOfA is the first packet of A that receivers execute; none: whichever comes first.
func (c *Config) firstOfA() uint8 {
	if c.Above > 0 {
		return none
	}
	return 0
}

// stream returns the messages of host i.
func (c *Config) stream(i int) []int {
	switch i {
	case 0:
		return c.Messages
	case 1:
		return c.Second
	}
	return nil
}

// fresh returns the Join by which host i gets a second queue pair; nil if there is none.
func (c *Config) fresh(i int) *Join {
	for k := range c.Changes {
		for l := range c.Changes[k].Join {
			if j := &c.Changes[k].Join[l]; j.Host == i && j.Numbers == FreshNumbers {
				return j
			}
		}
	}
	return nil
}

// counts reports whether the checks depend on whose packets were lost or delayed.
func (c *Config) counts() bool { return c.Policy != mcast.Strict || c.WithDeadAfter }

// again reports whether a change registers the whole group again.
func (c *Config) again() bool {
	return slices.ContainsFunc(c.Changes, func(k Change) bool { return k.Again })
}

// changing reports whether the members at the switches may differ from the first ones.
func (c *Config) changing() bool { return len(c.Changes) > 0 || c.Restart > 0 }

func (c *Config) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return timeout
}

// dead is DeadAfter at the switches of hosts: 2.5 timeouts.
func (c *Config) dead() time.Duration { return c.timeout() * dead / timeout }

func (c *Config) patience() time.Duration {
	if c.ProbeTimeout > 0 {
		return c.ProbeTimeout
	}
	return probeTimeout
}

func (c *Config) tries() int {
	if c.Tries > 0 {
		return c.Tries
	}
	return tries
}

// unnoticed reports whether faults may affect only B and its switch.
func (c *Config) unnoticed() bool {
	return c.OneLeg && c.Delay == 0 && c.Withheld == 0 && !c.HostsMayDie && c.ShortBuffer == 0 && len(c.Changes) == 0 && c.PortFull == 0 && c.Repair >= c.SendWindow && c.Lose < c.tries()
}

// String describes the scenario in one line.
func (c *Config) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d receivers, %v, send window %d, messages %v", c.Receivers, c.Tree, c.SendWindow, c.Messages)
	if len(c.Second) > 0 {
		when := "B at any time"
		if c.Turns {
			when = "then B"
		}
		if c.Fair {
			when += ", in fair turns"
		}
		fmt.Fprintf(&s, ", %s %v", when, c.Second)
	}
	op := "SEND"
	if c.Write {
		op = "WRITE"
	}
	if c.Reports {
		s.WriteString(", reports on the links")
	}
	fmt.Fprintf(&s, ", %s; lose %d, double %d, reorder %d, delay %d", op, c.Lose, c.Duplicate, c.Reorder, c.Delay)
	if c.Homes != nil {
		fmt.Fprintf(&s, "; hosts at switches %v", c.Homes)
	}
	if c.Meet > 0 {
		fmt.Fprintf(&s, "; %d new sessions of neighbours", c.Meet)
	}
	if c.Withheld > 0 {
		fmt.Fprintf(&s, "; %d receives withheld", c.Withheld)
	}
	switch c.Policy {
	case mcast.Evict:
		s.WriteString("; evict")
	case mcast.Quorum:
		fmt.Fprintf(&s, "; quorum:%d", c.Quorum)
	}
	if c.WithDeadAfter {
		s.WriteString("; silence is noticed")
	}
	if c.Probe {
		s.WriteString("; numbers are verified")
	}
	if c.Above > 0 {
		fmt.Fprintf(&s, "; A is registered %d packets too high", c.Above)
	}
	if c.Stored {
		s.WriteString("; positions are stored")
		if c.Store > 0 {
			fmt.Fprintf(&s, ", %d times without need", c.Store)
		}
		if c.StoredChanges {
			s.WriteString(", and changes of the members")
		}
		if c.FileFails {
			s.WriteString(", but for those that are lost")
		}
	}
	if c.Restart > 0 {
		fmt.Fprintf(&s, "; %d restarts of a switch", c.Restart)
		if len(c.RestartOf) > 0 {
			fmt.Fprintf(&s, " of %v", c.RestartOf)
		}
	}
	if c.Timeout > 0 {
		fmt.Fprintf(&s, "; a timeout is %v", c.Timeout)
	}
	if c.HostsMayDie {
		s.WriteString("; one receiver may die")
	}
	if c.ShortBuffer > 0 {
		fmt.Fprintf(&s, "; %s has too small a buffer for message %d", name(c.Receivers), c.ShortBuffer)
	}
	for i := range c.Changes {
		fmt.Fprintf(&s, "; %v", &c.Changes[i])
	}
	if c.PortFull > 0 {
		fmt.Fprintf(&s, "; %d full queues that take %d copies more", c.PortFull, c.PortFullRoom)
	}
	if c.Repair > 0 {
		fmt.Fprintf(&s, "; %d frames kept for repair, %v, %d tries", c.Repair, c.patience(), c.tries())
		if c.PortRoom > 0 {
			fmt.Fprintf(&s, ", %d at a time", c.PortRoom)
		}
	}
	if c.FastPath > 0 {
		fmt.Fprintf(&s, "; a fast path with %d slots", c.FastPath)
		if c.ACKs {
			s.WriteString(" that counts ACKs")
		}
		if c.Idle > 0 {
			fmt.Fprintf(&s, ", idle %d times", c.Idle)
		}
	}
	if c.OneLeg {
		s.WriteString("; faults only between B and its switch")
	}
	for i := range c.Receivers + 1 {
		h := c.host(i)
		fmt.Fprintf(&s, "; %s %v", name(i), h.Personality)
		if len(c.stream(i)) > 0 {
			fmt.Fprintf(&s, " sq=%s", notation.PSN(h.SQ))
		}
		fmt.Fprintf(&s, " rq=%s", notation.PSN(h.RQ))
	}
	return s.String()
}

func name(host int) string { return string(rune('A' + host)) }

func qpn(host int) rocev2.QPN { return rocev2.QPN(0x100 + host) }
