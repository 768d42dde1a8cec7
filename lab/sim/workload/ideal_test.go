// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// connection is what flows are in order of.
type connection struct {
	source, to topology.Node
	group      int32
	channel    uint16
}

// ideal runs a program over connections that lose nothing. Connections are served in a random
// order, or in rounds.
type ideal struct {
	t       *testing.T
	p       Program
	random  *rand.Rand
	queues  map[connection][]Flow
	ready   []connection
	keys    map[uint64]bool
	flows   int64
	at      topology.Node // the host of the event
	deliver func(f Flow, at topology.Node)
}

func newIdeal(t *testing.T, p Program, seed uint64, deliver func(Flow, topology.Node)) *ideal {
	return &ideal{t: t, p: p, random: rand.New(rand.NewPCG(seed, 1)), queues: make(map[connection][]Flow), keys: make(map[uint64]bool), deliver: deliver, at: None}
}

// runIdeal serves flows in a random order.
func runIdeal(t *testing.T, p Program, seed uint64, deliver func(Flow, topology.Node)) *ideal {
	t.Helper()
	x := newIdeal(t, p, seed, deliver)
	p.Start(x.emit)
	for len(x.ready) > 0 {
		i := x.random.IntN(len(x.ready))
		f := x.next(x.ready[i])
		if len(x.queues[x.ready[i]]) == 0 {
			x.ready[i] = x.ready[len(x.ready)-1]
			x.ready = x.ready[:len(x.ready)-1]
		}
		x.serve(f)
	}
	x.end()
	return x
}

// countRounds serves a flow of each connection in each round, and returns the number of rounds.
func countRounds(t *testing.T, p Program) (rounds int, flows int64) {
	t.Helper()
	x := newIdeal(t, p, 0, nil)
	p.Start(x.emit)
	for ; len(x.ready) > 0; rounds++ {
		var round []Flow
		ready := x.ready
		x.ready = nil
		for _, c := range ready {
			round = append(round, x.next(c))
			if len(x.queues[c]) > 0 {
				x.ready = append(x.ready, c)
			}
		}
		for _, f := range round {
			x.serve(f)
		}
	}
	x.end()
	return rounds, x.flows
}

// next takes the first flow of a connection.
func (x *ideal) next(c connection) Flow {
	f := x.queues[c][0]
	x.queues[c] = x.queues[c][1:]
	return f
}

func (x *ideal) end() {
	x.t.Helper()
	if x.flows != x.p.Flows() {
		x.t.Fatalf("%d flows, but Flows says %d", x.flows, x.p.Flows())
	}
}

func (x *ideal) serve(f Flow) {
	to := []topology.Node{f.To}
	if f.Group != None {
		to = nil
		for _, m := range x.p.Groups()[f.Group] {
			if m != f.Source {
				to = append(to, m)
			}
		}
	}
	for _, h := range to {
		x.at = h
		if x.deliver != nil {
			x.deliver(f, h)
		}
		x.p.Delivered(f, h, x.emit)
	}
	x.at = f.Source
	x.p.Completed(f, x.emit)
}

func (x *ideal) emit(f Flow) {
	x.t.Helper()
	if x.at != None && f.Source != x.at {
		x.t.Fatalf("an event at host %d emits a flow of host %d", x.at, f.Source)
	}
	if x.keys[f.Key] {
		x.t.Fatalf("key %#x is there twice", f.Key)
	}
	x.keys[f.Key] = true
	x.flows++
	c := connection{f.Source, f.To, f.Group, f.Channel}
	if len(x.queues[c]) == 0 {
		x.ready = append(x.ready, c)
	}
	x.queues[c] = append(x.queues[c], f)
}

// checkScript runs a script and compares what each rank has at the end with the whole message. It
// returns how often a byte came to a rank that did not need it.
func checkScript(t *testing.T, s *Script, bytes int64, seed uint64) (x *ideal, redundant int64) {
	t.Helper()
	ranges := make(map[uint64][2]int64) // by key
	for c, com := range s.communicators {
		for lane, l := range s.lanes[c] {
			for r := range com.Ranks {
				seq := 0
				for k := 0; ; k++ {
					st, ok := l.step(r, k)
					if !ok {
						break
					}
					if st.to != None {
						ranges[makeKey(c*len(s.lanes[c])+lane, r, seq)] = [2]int64{st.off, st.off + st.bytes}
						seq++
					}
				}
			}
		}
	}
	has := make(map[topology.Node][]bool)
	for _, com := range s.communicators {
		for r, h := range com.Ranks {
			has[h] = make([]bool, bytes)
			for i := range has[h] {
				has[h][i] = r == com.Root
			}
		}
	}
	emitted := make(map[uint64]bool)
	waits := make(map[[2]topology.Node]int) // readies from one host to another, less the messages the other way
	x = runIdeal(t, s, seed, func(f Flow, at topology.Node) {
		if isReady(f) {
			waits[[2]topology.Node{f.Source, at}]++
			return
		}
		if s.rendezvous {
			if waits[[2]topology.Node{at, f.Source}]--; waits[[2]topology.Node{at, f.Source}] < 0 {
				t.Fatalf("host %d has a message of host %d, for which it was not ready", at, f.Source)
			}
		}
		r, ok := ranges[f.Key]
		if !ok || r[1]-r[0] != f.Bytes {
			t.Fatalf("flow %#x of %d bytes is in no schedule: %v", f.Key, f.Bytes, r)
		}
		emitted[f.Key] = true
		for i := r[0]; i < r[1]; i++ {
			if !has[f.Source][i] {
				t.Fatalf("host %d sends byte %d to host %d, but does not have it", f.Source, i, at)
			}
			if has[at][i] {
				redundant++
			}
			has[at][i] = true
		}
	})
	for h, have := range has {
		for i, ok := range have {
			if !ok {
				t.Fatalf("host %d has not got byte %d", h, i)
			}
		}
		if w := s.Waiting(h); w != "" {
			t.Fatalf("host %d has not finished: %s", h, w)
		}
	}
	if len(emitted) != len(ranges) {
		t.Fatalf("%d of %d messages are delivered", len(emitted), len(ranges))
	}
	return x, redundant
}

// oneCommunicator returns ranks on hosts 10 and up, with a root.
func oneCommunicator(ranks, root int) []Communicator {
	hosts := make([]topology.Node, ranks)
	for i := range hosts {
		hosts[i] = topology.Node(10 + i)
	}
	return []Communicator{{Ranks: hosts, Root: root}}
}

// TestEveryByteComesToEveryRank runs all broadcasts with several numbers of ranks.
func TestEveryByteComesToEveryRank(t *testing.T) {
	const bytes = 41
	ranks := []int{2, 3, 4, 5, 6, 7, 8, 11, 16, 23, 33}
	check := func(name string, n int, cast interface {
		New([]Communicator) (*Script, error)
	}, once bool) {
		t.Helper()
		s, err := cast.New(oneCommunicator(n, n/3))
		if err != nil {
			t.Fatalf("%s with %d ranks: %v", name, n, err)
		}
		t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
			if _, redundant := checkScript(t, s, bytes, uint64(n)); once && redundant > 0 {
				t.Errorf("%d bytes came to a rank that had them", redundant)
			}
		})
	}
	for _, n := range ranks {
		for _, a := range HPLAlgorithms {
			if a == "exchange" {
				continue
			}
			for i := range 4 {
				check("hpl/"+a, n, HPL{Algorithm: a, Bytes: bytes, Chunks: 3, Synchronous: i&1 != 0, Rendezvous: i&2 != 0}, a != "long" && a != "longM" && a != "swap" && a != "swap-central")
			}
		}
		for _, a := range BroadcastAlgorithms {
			once := a != "scatter-allgather" && a != "scatter-ring" && a != "tuned"
			check("host/mpi/"+a, n, Broadcast{Algorithm: a, Bytes: bytes}, once)
			check("mpi/rendezvous/"+a, n, Broadcast{Algorithm: a, Bytes: bytes, Rendezvous: true}, once)
		}
		for _, a := range NCCLAlgorithms {
			check("nccl/"+a, n, NCCL{Algorithm: a, Bytes: bytes, Chunk: 8}, true)
		}
	}
}
