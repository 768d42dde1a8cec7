// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package groups is `gleam bench groups`: what many groups cost in one gleamd. Groups are made
// by envelopes, one at a time or many at once, of queue pairs that nobody has. Then frames of one
// source are sent into one of the groups, and into all in turn, as fast as gleamd takes them
// without a loss; the receivers' ACKs too.
package groups

import (
	"fmt"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/bench/options"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Options of a run.
type Options struct {
	options.Common
	Groups   []int
	Members  []int  // members of each group, the source included; each behind a port of its own
	Payload  int    // bytes of a packet
	Parallel int    // groups that are registered at once
	SVG      string // the file that bytes, registrations and time by groups are drawn into
}

// defaults are those of issue and paper: 1,000 groups.
func defaults() Options {
	return Options{Groups: []int{1000}, Members: []int{16}, Payload: 1024, Parallel: 4, Common: options.Common{Rounds: 5, Duration: time.Second}}
}

// maxGroups is what the addresses and the configuration's limit of groups have room for.
const maxGroups = 100_000

func (o *Options) check() error {
	for _, x := range []struct {
		flag        string
		each        []int
		least, most int
	}{{"groups", o.Groups, 1, maxGroups}, {"members", o.Members, 2, lab.MaxHosts}} {
		if i := slices.IndexFunc(x.each, func(n int) bool { return n < x.least || n > x.most }); i >= 0 || len(x.each) == 0 {
			return fmt.Errorf("--%s %v: want %d to %d", x.flag, x.each, x.least, x.most)
		}
	}
	switch {
	case o.Payload < 4 || o.Payload > 1024 || o.Payload%4 != 0:
		return fmt.Errorf("--payload %d: want a multiple of 4, 4 to 1024", o.Payload)
	case o.Rounds < 1 || o.Rounds > 100:
		return fmt.Errorf("--rounds %d: want 1 to 100", o.Rounds)
	case o.Duration < 10*time.Millisecond || o.Duration > time.Minute:
		return fmt.Errorf("--duration %v: want 10ms to 1m", o.Duration)
	case o.Parallel < 1 || o.Parallel > 1024:
		return fmt.Errorf("--parallel %d: want 1 to 1024", o.Parallel)
	}
	return nil
}

// pathMTU is that of the groups.
const pathMTU = 1024

// op is the opcode of the source's packets: each is a message.
const op = rocev2.SendOnly
