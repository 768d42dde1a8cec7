// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rc"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Tree is where the switches are. Host 0 is the source, A; the receivers are B,
// C and D.
type Tree uint8

// Trees.
const (
	Flat  Tree = iota // all hosts at one switch
	Rack              // B and C behind a second switch, the others at the first
	Racks             // B behind a second switch, the other receivers behind a third
)

// String returns what the tree looks like.
func (t Tree) String() string {
	return [...]string{"1 switch", "2 switches", "3 switches"}[t]
}

// Bounds limit what the network may do wrong, in all.
type Bounds struct {
	Lose      int // packets lost
	Duplicate int // packets delivered twice
	Reorder   int // packets delivered before the one ahead of them
	Delay     int // timers that fire while something is in flight
	PortFull  int // ports whose queue is full for a time
}

// Config is one scenario.
type Config struct {
	Name      string
	Tree      Tree
	Receivers int // 2 or 3
	Window    int // PSNs that a sender may have unacknowledged

	Messages []int // packets of each message of A
	Second   []int // the same for B, which is a source too if not empty
	Turns    bool  // B begins only when it has received all of A's stream
	Fair     bool  // a source's turn ends with its message as soon as another one waits
	Write    bool  // RDMA WRITE to symmetric windows instead of SEND

	// Personalities and first PSNs by host; missing ones are those of host 0.
	Hosts []Host

	Bounds
	Withheld int // receives that the first receiver has not posted at the start
	// Policy is the group's. Watched sets its DeadAfter.
	Policy        mcast.Policy
	Quorum        int // receivers of mcast.Quorum
	WithDeadAfter bool
	// HostsMayDie lets the last receiver die at any moment.
	HostsMayDie bool
	// ShortDeadAfter, if not 0, is the number, from 1, of the message for which the last
	// receiver has posted too small a buffer: it answers with a fatal NAK, and its
	// queue pair is in the error state.
	ShortDeadAfter int
	// Outside is how many of the last hosts are no members at the start.
	Outside int
	// Probe has the switches verify the numbers of new receivers. Those of the first
	// members they have verified before the first state.
	Probe bool
	// Changes are made by the control plane, in this order, each at any moment, at
	// each switch at another one.
	Changes []Change
	// Timeout is that of the hosts' queue pairs; 0 is the default here. A source has
	// eight of them before it gives up: 32 ms by default, of which a receiver that
	// comes back takes 20 ms alone (R73).
	Timeout time.Duration
	// Repair is how many frames each switch keeps, to repair losses by itself; 0
	// none. Patience and Tries are mcast.RepairSpec's; 0 is the default here.
	Repair       int
	ProbeTimeout time.Duration
	Tries        int
	// PortRoom is how many copies of kept frames a driver takes at a time; 0 any number.
	PortRoom int
	// JamRoom is how many copies a full queue still takes.
	JamRoom int
	// OneLeg lets nothing go wrong but on the way to B and back. With enough room to
	// repair, and if nothing is late, nobody else may notice then.
	OneLeg bool
	// EndlessRetries says that fair runs are known not to complete always; only safety
	// is checked.
	EndlessRetries bool
}

// Host is what distinguishes one host from another.
type Host struct {
	Personality rc.Personality
	SQ, RQ      rocev2.PSN
}

const (
	pmtu    = 256
	timeout = 4 * time.Millisecond
	dead    = 10 * time.Millisecond // 2.5 timeouts
	// deadBelow is the root's: more than twice dead, which the switches below it
	// may take to find out, and less than a source's eight timeouts.
	deadBelow = 25 * time.Millisecond
	stalled   = 20 * time.Millisecond // more than a living source is silent for
	rnrCode   = 1                     // 10 us
	rnrWait   = 10 * time.Microsecond
	// probeTimeout times tries is less than timeout: the switch repairs before the
	// source does.
	probeTimeout = 500 * time.Microsecond
	tries        = 2
	probeWait    = 500 * time.Microsecond // for the answer to a probe
	jamTime      = 200 * time.Microsecond // less than patience
	frameBytes   = 2048                   // what a switch says that keeping a frame takes
	groupQPN     = 0x4242
	freshQPN     = 0x10 // of a host's second queue pair, above its first
	maxHosts     = 8
	noLeg        = mcast.LegID(1<<16 - 1)
	groupKey     = 0xFEED // R_Key of the group's window
	groupVA      = 0x10000
	// epoch is the time at which every stored state is restored.
	epoch = time.Hour
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

// fresh returns the Join by which host i has a second queue pair; nil if none.
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

// counts says whether it matters which hosts' packets were lost or late.
func (c *Config) counts() bool { return c.Policy != mcast.Strict || c.WithDeadAfter }

// again says whether some change puts the whole group once more.
func (c *Config) again() bool {
	return slices.ContainsFunc(c.Changes, func(k Change) bool { return k.Again })
}

func (c *Config) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return timeout
}

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

// unnoticed says whether nobody but B and its switch may notice what goes wrong.
func (c *Config) unnoticed() bool {
	return c.OneLeg && c.Delay == 0 && c.Withheld == 0 && !c.HostsMayDie && c.ShortDeadAfter == 0 && len(c.Changes) == 0 && c.PortFull == 0 && c.Repair >= c.Window && c.Lose < c.tries()
}

// String describes the scenario in one line.
func (c *Config) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d receivers, %v, window %d, messages %v", c.Receivers, c.Tree, c.Window, c.Messages)
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
	fmt.Fprintf(&s, ", %s; lose %d, double %d, reorder %d, delay %d", op, c.Lose, c.Duplicate, c.Reorder, c.Delay)
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
	if c.Timeout > 0 {
		fmt.Fprintf(&s, "; a timeout is %v", c.Timeout)
	}
	if c.HostsMayDie {
		s.WriteString("; one receiver may die")
	}
	if c.ShortDeadAfter > 0 {
		fmt.Fprintf(&s, "; %s has too small a buffer for message %d", name(c.Receivers), c.ShortDeadAfter)
	}
	for i := range c.Changes {
		fmt.Fprintf(&s, "; %v", &c.Changes[i])
	}
	if c.PortFull > 0 {
		fmt.Fprintf(&s, "; %d full queues that take %d copies more", c.PortFull, c.JamRoom)
	}
	if c.Repair > 0 {
		fmt.Fprintf(&s, "; %d frames kept for repair, %v, %d tries", c.Repair, c.patience(), c.tries())
		if c.PortRoom > 0 {
			fmt.Fprintf(&s, ", %d at a time", c.PortRoom)
		}
	}
	if c.OneLeg {
		s.WriteString("; faults only between B and its switch")
	}
	for i := range c.Receivers + 1 {
		h := c.host(i)
		fmt.Fprintf(&s, "; %s %v", name(i), h.Personality)
		if len(c.stream(i)) > 0 {
			fmt.Fprintf(&s, " sq=%06x", uint32(h.SQ))
		}
		fmt.Fprintf(&s, " rq=%06x", uint32(h.RQ))
	}
	return s.String()
}

func name(host int) string { return string(rune('A' + host)) }

func qpn(host int) rocev2.QPN { return rocev2.QPN(0x100 + host) }
