// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// Storage is clients that write blocks to replicas, each with a number of writes under way.
// A write is done when all replicas have it.
type Storage struct {
	Algorithm string // one of StorageAlgorithms
	Bytes     int64  // bytes of a write
	Writes    int    // writes of each client
	Depth     int    // writes of a client at a time
	Overhead  topology.Time
}

// StorageAlgorithms are a message to each replica, a chain from one replica to the next, and a Gleam group.
var StorageAlgorithms = []string{"unicast", "chain", "group"}

// New returns the program for sets of hosts: a client and its replicas each. A host may be in
// any number of sets.
func (s Storage) New(sets [][]topology.Node) (*Writes, error) {
	if err := checkSize(s.Bytes, 1); err != nil {
		return nil, err
	}
	w := &Writes{Storage: s, sets: sets, state: make([]client, len(sets))}
	if len(sets) < 1 || len(sets) > maxJobs {
		return nil, fmt.Errorf("workload: %d clients with replicas; want 1 to %d", len(sets), maxJobs)
	}
	for i, set := range sets {
		if len(set) < 2 || len(set) > maxRanks {
			return nil, fmt.Errorf("workload: client %d has %d replicas; want 1 to %d", i, len(set)-1, maxRanks-1)
		}
		w.flows += int64(s.Writes) * int64(s.legs(set))
	}
	switch {
	case s.Writes < 1 || s.Writes > maxSeq || s.Depth < 1:
		return nil, fmt.Errorf("workload: %d writes of a client, %d at a time; want 1 to %d, and at least one at a time", s.Writes, s.Depth, maxSeq)
	case s.Algorithm == "group":
		w.groups = sets
	case s.Algorithm != "unicast" && s.Algorithm != "chain":
		return nil, fmt.Errorf("workload: storage algorithm %q; want one of %v", s.Algorithm, StorageAlgorithms)
	}
	return w, nil
}

// legs returns the number of flows of a write. A chain has one more than replicas: the
// last replica's acknowledgement to the client, without bytes.
func (s Storage) legs(set []topology.Node) int {
	switch s.Algorithm {
	case "group":
		return 1
	case "chain":
		return len(set)
	}
	return len(set) - 1
}

// Writes is the program of Storage.
type Writes struct {
	Storage
	sets   [][]topology.Node
	groups [][]topology.Node
	state  []client
	flows  int64
}

// client is the state of a client.
type client struct {
	begun  int         // writes
	waited map[int]int // flows that are not completed, by write that has not ended
}

// WriteOf returns the number of the write that a flow of the program belongs to, and how many flows the write has.
func (w *Writes) WriteOf(f Flow) (number uint64, flows int) {
	i, _, seq := splitKey(f.Key)
	return makeKey(i, 0, seq), w.legs(w.sets[i])
}

// Clients returns the hosts of the clients, in order; a host of several clients is there as often.
func (w *Writes) Clients() (hosts []topology.Node) {
	for _, set := range w.sets {
		hosts = append(hosts, set[0])
	}
	return hosts
}

// Groups implements Program.
func (w *Writes) Groups() [][]topology.Node { return w.groups }

// Flows implements Program.
func (w *Writes) Flows() int64 { return w.flows }

// Start implements Program.
func (w *Writes) Start(emit func(Flow)) {
	for i := range w.sets {
		w.state[i].waited = make(map[int]int, w.Depth)
		for range min(w.Depth, w.Storage.Writes) {
			w.write(i, emit)
		}
	}
}

// write begins the next write of a client.
func (w *Writes) write(i int, emit func(Flow)) {
	c, set := &w.state[i], w.sets[i]
	seq := c.begun
	c.begun++
	f := Flow{Source: set[0], To: None, Group: None, Bytes: w.Bytes, After: w.Overhead}
	c.waited[seq] = w.legs(set)
	switch w.Algorithm {
	case "group":
		f.Key, f.Group = makeKey(i, 0, seq), int32(i)
		emit(f)
	case "chain":
		f.Key, f.To = makeKey(i, 0, seq), set[1]
		c.waited[seq] = 1
		emit(f)
	default:
		for leg, to := range set[1:] {
			f.Key, f.To = makeKey(i, leg, seq), to
			emit(f)
		}
	}
}

// Delivered implements Program: in a chain, a replica passes the write on.
func (w *Writes) Delivered(f Flow, at topology.Node, emit func(Flow)) {
	if w.Algorithm != "chain" {
		return
	}
	i, leg, seq := splitKey(f.Key)
	set := w.sets[i]
	f.Source, f.After = at, w.Overhead
	switch f.Key = makeKey(i, leg+1, seq); {
	case leg == len(set)-1: // the client has the acknowledgement
		w.done(i, seq, emit)
		return
	case leg == len(set)-2:
		f.To, f.Bytes = set[0], 0
	default:
		f.To = set[leg+2]
	}
	emit(f)
}

// Completed implements Program.
func (w *Writes) Completed(f Flow, emit func(Flow)) {
	if w.Algorithm == "chain" {
		return
	}
	i, _, seq := splitKey(f.Key)
	w.done(i, seq, emit)
}

// done takes a completion of a write; after the last one the client begins another write.
func (w *Writes) done(i, seq int, emit func(Flow)) {
	c := &w.state[i]
	c.waited[seq]--
	if c.waited[seq] > 0 {
		return
	}
	delete(c.waited, seq)
	if c.begun < w.Storage.Writes {
		w.write(i, emit)
	}
}

// Waiting says what a host waits for; "" if nothing.
func (w *Writes) Waiting(host topology.Node) string {
	for i, set := range w.sets {
		if n := len(w.state[i].waited); set[0] == host && n > 0 {
			return fmt.Sprintf("client %d: completion of %d writes, %d of %d begun", i, n, w.state[i].begun, w.Storage.Writes)
		}
	}
	return ""
}
