// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Config is what is simulated. The zero value of an optional field takes the default named
// beside it.
type Config struct {
	Topology   *topology.Topology
	Program    workload.Program
	Seed       uint64 // the seed of losses, marks, hashes and first PSNs
	Partitions int    // the number of partitions, at most one for each pod of the topology; default 1

	PathMTU int        // bytes; default 4096
	Queue   int64      // most bytes that wait at a port; default 32 MiB
	ECN     ECN        // default: nothing is marked
	PFC     PFC        // default: no port is paused
	Host    Host       // the parameters of every queue pair
	Trees   TreeChoice // default LeastUsed

	// Detect is the time from a failure of the topology, or its end, until all switches have other
	// routes for unicasts; default 1 ms. The trees of groups stay.
	Detect Time

	// Train is the most packets that one event may stand for; default 1. Trains are not used with PFC,
	// congestion control, failures or taps.
	Train int

	// Repair is that of every group at every switch; the zero value means none.
	Repair mcast.RepairSpec
	// Record, if not nil, is called at each completion of a flow by the goroutine that runs
	// the source's partition.
	Record func(partition int, f workload.Flow, start, end Time)
	// Taps are the ports that are observed: see Simulation.Observed.
	Taps []Tap
	// AllCNPs has switches pass on the CNPs of all members, in the place of those that the CNP filter passes.
	AllCNPs bool
	// SwitchAckEvery is the mcast.GroupSpec.AckEvery of every group. By default the hosts alone ask, each 64
	// packets. Not with trains.
	SwitchAckEvery uint32
	// DeadAfter is the silence after which a receiver is removed from its groups; 0: it is waited for.
	DeadAfter time.Duration
	// RepairRoom is the most packets that wait at a port when one is sent again; default 4 at a host's port and
	// 32 at one to another switch. gleamd fills the queue of a port that has a rate of its own.
	RepairRoom int
	// RepairBytes is the packet memory of each switch for repair; 0: the default of mcast.Limits.
	RepairBytes int64
}

// Host sets the queue pairs.
type Host struct {
	Personality rc.Personality
	Window      int           // PSNs in flight; default 8192
	AckEvery    int           // one packet in AckEvery asks for an ACK; default 4
	Timeout     time.Duration // local ACK timeout; default 4 ms
	Retries     uint8         // default 7
	Write       bool          // messages are RDMA WRITEs, else SENDs
	// Receives is the number of receives that a queue pair has posted, default 1, and ReceiveDelay the
	// time from when a message has taken one to when it is posted again; default 0. A SEND for which none is
	// posted is answered by an RNR NAK with RNRTimer; default 0.64 ms.
	Receives     int
	ReceiveDelay Time
	RNRTimer     time.Duration
	Depth        int           // messages that a queue pair has at a time, the others wait; default 64
	Congestion   *dcqcn.Config // nil: no congestion control
	// Rate, if not 0, is the most bits a second that a queue pair sends of requests, by a pacer: after a
	// time in which it could not send it may catch up for 4 ms.
	Rate int64
}

// ECN sets the marking of packets that wait at a port, by the number of bytes before them: none below
// Min, all from Max on, and between them with a probability that rises to Probability.
type ECN struct {
	Min, Max    int64
	Probability float64
}

// PFC sets priority flow control, of the one class that all packets have. A switch pauses the port at
// the other end of a link while it holds more than XOff bytes that came by that link, until it
// holds no more than XOn. A packet with several copies counts once, until the last one has left.
type PFC struct{ XOff, XOn int64 } // XOff 0: none

// TreeChoice is how a switch chooses between next hops for a group.
type TreeChoice uint8

// Choices.
const (
	LeastUsed TreeChoice = iota // the neighbour with the fewest groups, as gleamd does
	Hashed                      // a hash of the group and the switch, as ECMP would
	Random                      // a random number for each group and switch
)

// String returns the choice as configurations write it.
func (t TreeChoice) String() string {
	return [...]string{LeastUsed: "least-used", Hashed: "hashed", Random: "random"}[t]
}

// setDefaults fills in defaults, then checks every field.
func (c *Config) setDefaults() error {
	def(&c.Partitions, 1)
	def(&c.PathMTU, 4096)
	def(&c.Train, 1)
	def(&c.Queue, 32<<20)
	def(&c.Detect, topology.Millisecond)
	def(&c.Host.Window, 8192)
	def(&c.Host.AckEvery, 4)
	def(&c.Host.Timeout, 4*time.Millisecond)
	def(&c.Host.Retries, 7)
	def(&c.Host.Depth, 64)
	def(&c.Host.Receives, 1)
	def(&c.Host.RNRTimer, 640*time.Microsecond)
	var errs []error
	bad := func(field string, got any, want string) {
		errs = append(errs, fmt.Errorf("sim: %s is %v: want %s", field, got, want))
	}
	switch {
	case c.Topology == nil:
		return errors.New("sim: there is no topology")
	case c.Program == nil:
		return errors.New("sim: there is no program")
	}
	if c.Partitions < 1 || c.Partitions > c.Topology.Pods {
		bad("Partitions", c.Partitions, fmt.Sprintf("1 to %d, the number of the topology's pods", c.Topology.Pods))
	}
	if !rocev2.ValidPathMTU(c.PathMTU) {
		bad("PathMTU", c.PathMTU, rocev2.PathMTUText)
	}
	if least := int64(c.PathMTU + frameBytes); c.Queue < least || c.Queue > maxQueue {
		bad("Queue", c.Queue, fmt.Sprintf("%d (a packet) to %d bytes", least, int64(maxQueue)))
	}
	if e := c.ECN; e.Min < 0 || e.Max < e.Min || !(e.Probability >= 0 && e.Probability <= 1) {
		bad("ECN", e, "0 or more bytes, not more than Max, and a probability of 0 to 1")
	}
	if f := c.PFC; f.XOff < 0 || f.XOn < 0 || f.XOff > maxQueue || f.XOff > 0 && f.XOn >= f.XOff {
		bad("PFC", f, "XOff of 0 to 1 GiB, and XOn below it")
	}
	if c.Train < 1 || c.Train > maxTrain {
		bad("Train", c.Train, fmt.Sprintf("1 to %d packets", maxTrain))
	}
	if c.Detect < 0 {
		bad("Detect", c.Detect, "0 or more ps")
	}
	if h := &c.Host; h.Receives < 1 || h.ReceiveDelay < 0 {
		bad("Host", fmt.Sprintf("%d receives, posted again after %d ps", h.Receives, h.ReceiveDelay), "1 or more, after 0 or more")
	}
	if c.Host.Rate < 0 {
		bad("Host.Rate", c.Host.Rate, "0 or more bit/s")
	}
	if h := &c.Host; h.RNRTimer < 0 || h.RNRTimer > rocev2.RNRCode(0).Duration() {
		bad("Host.RNRTimer", h.RNRTimer, fmt.Sprintf("more than 0, at most %v", rocev2.RNRCode(0).Duration()))
	}
	if err := c.Topology.CheckFailures(); err != nil {
		errs = append(errs, err)
	}
	if c.Trees > Random {
		bad("Trees", uint8(c.Trees), "LeastUsed, Hashed or Random")
	}
	return errors.Join(errs...)
}

// maxQueue bounds what waits at a port: its time must fit an int64 in picoseconds.
const maxQueue = 1 << 30

func def[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}
