// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
)

// Weights is the way of new weights from trainers, each of which has a shard of them, to receivers.
// Receiver j wants part j mod Parts of each shard.
type Weights struct {
	Algorithm           string // one of WeightsAlgorithms
	Bytes               int64  // all shards together
	Trainers, Receivers int
	Parts               int
	Chunk               int64 // what is passed on in one piece along a ring or a tree
}

// WeightsAlgorithms are, for each part of a shard, a chain of its receivers (ring), NCCL's two trees, and a
// flow to each receiver (p2p); a group of all receivers for each shard; and a group for each part of one.
var WeightsAlgorithms = []string{"ring", "tree", "p2p", "group", "shard-groups"}

// Sync is the program of Weights.
type Sync struct {
	casts    []cast
	groups   [][]topology.Node
	trainers []topology.Node
	wants    int64   // bytes that each receiver is to get
	got      []int64 // bytes by host
	flows    int64
}

// cast is the way of a part of a shard, which no host has to remember anything for.
type cast struct {
	hosts    []topology.Node // hosts by rank, the trainer first
	children [][]int         // ranks by rank; nil: a group
	group    int32
	bytes    int64
	chunks   int
	width    int // the most children of a rank
}

// New returns the program: trainers are the first hosts, receivers those behind them.
func (w Weights) New(hosts []topology.Node) (*Sync, error) {
	if w.Trainers < 1 || w.Parts < 1 || w.Receivers < w.Parts || w.Receivers%w.Parts != 0 || w.Trainers*w.Parts > math.MaxUint16/2 {
		return nil, fmt.Errorf("workload: %d trainers, %d receivers of %d parts; want 1 trainer or more, receivers for each part, and at most %d parts of all shards", w.Trainers, w.Receivers, w.Parts, math.MaxUint16/2)
	}
	piece := w.Bytes / int64(w.Trainers*w.Parts)
	if w.Chunk < 1 || piece < 1 || piece > MaxBytes || len(hosts) != w.Trainers+w.Receivers {
		return nil, fmt.Errorf("workload: parts of %d bytes, chunks of %d, %d hosts; want 1 byte or more each, and %d hosts", piece, w.Chunk, len(hosts), w.Trainers+w.Receivers)
	}
	if w.Algorithm == "group" {
		piece, w.Parts = piece*int64(w.Parts), 1
	}
	s := &Sync{trainers: hosts[:w.Trainers], wants: piece * int64(w.Trainers), got: make([]int64, topology.MaxHosts)}
	receivers := hosts[w.Trainers:]
	for t := range w.Trainers {
		for part := range w.Parts {
			n := len(receivers) / w.Parts
			to := []topology.Node{hosts[t]}
			for i := range n { // chains begin at receivers that lie far from each other
				to = append(to, receivers[(i+t*n/w.Trainers)%n*w.Parts+part])
			}
			if err := s.add(&w, to, piece); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// add adds the casts of a part.
func (s *Sync) add(w *Weights, hosts []topology.Node, bytes int64) error {
	ranks, chunks := len(hosts), int(min((bytes+w.Chunk-1)/w.Chunk, maxSeq))
	one := func(x cast) {
		x.hosts = hosts
		for _, c := range x.children {
			x.width = max(x.width, len(c))
			s.flows += int64(len(c) * x.chunks)
		}
		s.casts = append(s.casts, x)
	}
	switch w.Algorithm {
	case "ring":
		one(cast{children: newTree(ranks, bytes, chunks, posted, inChain).children, bytes: bytes, chunks: chunks})
	case "tree":
		for i, half := range []int64{bytes - bytes/2, bytes / 2} {
			chunks := (chunks + 1) / 2
			one(cast{children: newDoubleTree(ranks, 0, half, chunks, i == 1).children, bytes: half, chunks: chunks})
		}
	case "p2p":
		one(cast{children: newTree(ranks, bytes, 1, posted, inStar).children, bytes: bytes, chunks: 1})
	case "group", "shard-groups":
		one(cast{group: int32(len(s.groups)), bytes: bytes, chunks: 1})
		s.groups = append(s.groups, hosts)
		s.flows++
	default:
		return fmt.Errorf("workload: weights by %q; want one of %v", w.Algorithm, WeightsAlgorithms)
	}
	return nil
}

// Groups implements Program.
func (s *Sync) Groups() [][]topology.Node { return s.groups }

// Flows implements Program.
func (s *Sync) Flows() int64 { return s.flows }

// Start implements Program.
func (s *Sync) Start(emit func(Flow)) {
	for i := range s.casts {
		for chunk := range s.casts[i].chunks {
			s.pass(i, 0, chunk, emit)
		}
	}
}

// pass sends a chunk from a rank to all that have it from there.
func (s *Sync) pass(i, rank, chunk int, emit func(Flow)) {
	c := &s.casts[i]
	_, n := span(c.bytes, c.chunks, chunk)
	f := Flow{Key: makeKey(i, rank, chunk*max(c.width, 1)), Source: c.hosts[rank], To: None, Group: None, Channel: uint16(i), Bytes: n}
	if c.children == nil {
		f.Group, f.Channel = c.group, 0
		emit(f)
		return
	}
	for k, child := range c.children[rank] {
		x := f
		x.Key, x.To = f.Key+uint64(k), c.hosts[child]
		emit(x)
	}
}

// Delivered implements Program.
func (s *Sync) Delivered(f Flow, at topology.Node, emit func(Flow)) {
	s.got[at] += f.Bytes
	i, from, seq := splitKey(f.Key)
	if c := &s.casts[i]; c.children != nil {
		s.pass(i, c.children[from][seq%c.width], seq/c.width, emit)
	}
}

// Completed implements Program.
func (s *Sync) Completed(Flow, func(Flow)) {}

// Trainers returns the hosts that have the shards.
func (s *Sync) Trainers() []topology.Node { return s.trainers }

// Whole returns the number of receivers that have all that they want.
func (s *Sync) Whole() (n int) {
	for _, got := range s.got {
		if got >= s.wants {
			n++
		}
	}
	return n
}
