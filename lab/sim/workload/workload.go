// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package workload has what simulated hosts send: the broadcasts of HPL, Open MPI and NCCL
// over unicasts, the same by groups, replicated writes, background, and traces. A program reacts to
// deliveries and completions with new flows.
//
// A reaction at a host reads and changes the state of that host alone, and the flows that
// come of it begin there. So programs run on several goroutines, one for each part of the
// network, with the same result as on one.
package workload

import "github.com/gleam-rdma/gleam/lab/sim/topology"

// None is no host, no group or no rank.
const None = -1

// Flow is one message of a connection.
type Flow struct {
	Key     uint64 // a number that only this one of all flows of a run has
	Source  topology.Node
	To      topology.Node // None: to the group
	Group   int32         // None: to the host To
	Channel uint16        // the number among several connections with the same ends
	Bytes   int64         // may be 0
	// After is the time from the event that the flow is a reaction to, or from the start.
	After topology.Time
}

// Program decides what is sent. A connection is the source, the host or group, and the
// channel; its flows are in the order of emission.
type Program interface {
	// Groups returns the members of each group, by the number that flows have. The first one
	// registers the group, and is the source if there is only one.
	Groups() [][]topology.Node
	// Flows returns the number of flows of the whole run.
	Flows() int64
	Start(emit func(Flow))
	// Delivered is called when all bytes of a flow have come to a host: once for each
	// receiver of a group.
	Delivered(f Flow, at topology.Node, emit func(Flow))
	// Completed is called when the source has the flow's completion.
	Completed(f Flow, emit func(Flow))
}

// A key is made of, from the top: the number of the program, the job, the rank of the
// source in the job, and a sequence number.
const (
	seqBits     = 24
	rankBits    = 16
	jobBits     = 18
	programBits = 64 - jobBits - rankBits - seqBits

	maxSeq      = 1 << seqBits
	maxRanks    = 1 << rankBits
	maxJobs     = 1 << jobBits
	maxPrograms = 1 << programBits
)

func makeKey(job, rank, seq int) uint64 {
	return uint64(job)<<(rankBits+seqBits) | uint64(rank)<<seqBits | uint64(seq)
}

// splitKey returns the parts of a key without those of the program.
func splitKey(key uint64) (job, rank, seq int) {
	return int(key >> (rankBits + seqBits) & (maxJobs - 1)), int(key >> seqBits & (maxRanks - 1)), int(key & (maxSeq - 1))
}

// ProgramOf returns the number of a flow's program in a Mix; 0 without one.
func ProgramOf(key uint64) int { return int(key >> (64 - programBits)) }
