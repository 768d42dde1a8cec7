// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/mcast"
)

// Sets of hosts: A, B, C, D. PSNs are close to the wrap where the set is used.
var (
	allRXE    = []Host{{rc.RXE, 0xFFFFFE, 0xFFFFFF}, {rc.RXE, 0xFFFFFF, 0xFFFFFE}, {rc.RXE, 0, 0xFFFFFD}, {rc.RXE, 0, 0}}
	allStrict = []Host{{rc.Strict, 0xFFFFFE, 0xFFFFFF}, {rc.Strict, 0xFFFFFF, 0xFFFFFE}, {rc.Strict, 0, 0xFFFFFD}, {rc.Strict, 0, 0}}
	mixed     = []Host{{rc.RXE, 0xFFFFFF, 0}, {rc.Strict, 0x7FFFFF, 0x7FFFFE}, {rc.RXE, 5, 0xFFFFFF}, {rc.Strict, 0, 0}}
	crossed   = []Host{{rc.Strict, 0xFFFFFF, 0}, {rc.RXE, 0x7FFFFF, 0x7FFFFE}, {rc.Strict, 5, 0xFFFFFF}, {rc.RXE, 0, 0}}
	// alike has equal numbers at all hosts, as applications do that choose 0: PSNs of one
	// turn look like those of another.
	alike = []Host{{rc.RXE, 0, 0}, {rc.Strict, 0, 0}, {rc.RXE, 0, 0}, {rc.RXE, 0, 0}}
)

// Tiny are the scenarios of every test run: some thousand states each, all searched.
func Tiny() []Config {
	return append([]Config{
		{Name: "rxe", Receivers: 2, SendWindow: 4, Messages: []int{1, 2}, Hosts: allRXE, Bounds: Bounds{Lose: 1, Duplicate: 1}},
		{Name: "strict", Receivers: 2, SendWindow: 3, Messages: []int{2}, Hosts: allStrict, Bounds: Bounds{Lose: 1, Reorder: 1, Delay: 1}},
		{Name: "three", Receivers: 3, SendWindow: 3, Messages: []int{2}, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "racks", Tree: Racks, Receivers: 3, SendWindow: 3, Messages: []int{1}, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "rnr", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Hosts: mixed, Bounds: Bounds{Lose: 1}, Withheld: 1},
		{Name: "write", Receivers: 2, SendWindow: 3, Messages: []int{3, 1}, Write: true, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "death", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Evict, WithDeadAfter: true, HostsMayDie: true, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "death-racks", Tree: Racks, Receivers: 3, SendWindow: 3, Messages: []int{1}, Policy: mcast.Evict, WithDeadAfter: true, HostsMayDie: true, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "two-sources", Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{2}, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "fair-turns", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Second: []int{2, 1}, Fair: true, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "turns-rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Turns: true, Hosts: alike, Bounds: Bounds{Lose: 1, Delay: 1}},
		{Name: "turns-racks", Tree: Racks, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Turns: true, Hosts: alike, Bounds: Bounds{Duplicate: 1}},
		{Name: "repair", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Repair: 3, Hosts: allRXE, Bounds: Bounds{Lose: 1}},
		{Name: "repair-leg", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Repair: 3, OneLeg: true, Hosts: mixed, Bounds: Bounds{Lose: 1, Duplicate: 1}},
		{Name: "repair-write", Receivers: 2, SendWindow: 3, Messages: []int{3}, Write: true, Repair: 4, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "repair-full", Receivers: 2, SendWindow: 3, Messages: []int{2, 1}, Repair: 1, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "repair-rnr", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, ProbeTimeout: 20 * time.Microsecond, Hosts: mixed, Withheld: 1},
		{Name: "repair-rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{2}, Repair: 2, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "repair-rack-window", Tree: Rack, Receivers: 1, SendWindow: 3, Messages: []int{3}, Repair: 4, ProbeTimeout: 20 * time.Millisecond, Timeout: 5 * time.Millisecond, Hosts: mixed, Bounds: Bounds{Lose: 3}},
		{Name: "repair-death", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Evict, WithDeadAfter: true, HostsMayDie: true, Repair: 3, Hosts: mixed},
		{Name: "asks", Receivers: 2, SendWindow: 3, Messages: []int{4}, Repair: 4, AckEvery: 2, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "repair-turns", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Turns: true, Repair: 2, Hosts: alike, Bounds: Bounds{Lose: 1}},
	}, slices.Concat(TinyTrees(), TinyMembers(), TinyRestarts(), TinyRebuilds(), TinyFastPaths(), TinyACKs(), TinyPersonalities())...)
}

// Quick are scenarios of some hundred thousand states, all searched.
func Quick() []Config {
	return append([]Config{
		{Name: "strict-late", Receivers: 2, SendWindow: 3, Messages: []int{3}, Hosts: allStrict, Bounds: Bounds{Lose: 1, Duplicate: 1, Delay: 1}},
		{Name: "rxe-losses", Receivers: 2, SendWindow: 4, Messages: []int{1, 3}, Hosts: allRXE, Bounds: Bounds{Lose: 3}},
		{Name: "three", Receivers: 3, SendWindow: 3, Messages: []int{1, 2}, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "asks-rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{3}, Repair: 3, AckEvery: 2, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "asks-quorum", Receivers: 2, SendWindow: 3, Messages: []int{4}, Repair: 2, AckEvery: 2, Policy: mcast.Quorum, Quorum: 1, WithDeadAfter: true, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "quorum-behind", Receivers: 2, SendWindow: 3, Messages: []int{1, 1, 1, 1}, Repair: 2, Policy: mcast.Quorum, Quorum: 1, WithDeadAfter: true, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "rack-late", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{2}, Hosts: crossed, Bounds: Bounds{Lose: 1, Duplicate: 1, Delay: 1}},
		{Name: "rnr-rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Hosts: mixed, Bounds: Bounds{Lose: 1, Reorder: 1}, Withheld: 2},
		{Name: "death", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Evict, WithDeadAfter: true, HostsMayDie: true, Hosts: mixed, Bounds: Bounds{Lose: 1, Delay: 1}},
		{Name: "two-sources", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Second: []int{2}, Hosts: mixed, Bounds: Bounds{Lose: 1, Duplicate: 1}},
		{Name: "fair-turns-late", Receivers: 2, SendWindow: 2, Messages: []int{1, 1}, Second: []int{1}, Fair: true, Hosts: alike, Bounds: Bounds{Delay: 1}},
		{Name: "repair-losses", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Repair: 4, Hosts: allRXE, Bounds: Bounds{Lose: 2}},
		{Name: "repair-strict", Receivers: 2, SendWindow: 3, Messages: []int{2}, Repair: 4, Hosts: allStrict, Bounds: Bounds{Lose: 1, Reorder: 1}},
		{Name: "repair-late", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, Hosts: mixed, Bounds: Bounds{Lose: 1, Delay: 1}},
		{Name: "repair-leg", Receivers: 2, SendWindow: 4, Messages: []int{1, 4}, Repair: 4, Tries: 3, ProbeTimeout: 300 * time.Microsecond, OneLeg: true, Hosts: mixed, Bounds: Bounds{Lose: 2, Duplicate: 1}},
		{Name: "repair-room", Receivers: 2, SendWindow: 4, Messages: []int{4}, Repair: 4, PortRoom: 1, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "repair-full", Receivers: 2, SendWindow: 4, Messages: []int{3, 1}, Repair: 2, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "repair-rnr", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, ProbeTimeout: 20 * time.Microsecond, Hosts: mixed, Bounds: Bounds{Lose: 1}, Withheld: 1},
		{Name: "repair-racks", Tree: Racks, Receivers: 2, SendWindow: 3, Messages: []int{2}, Repair: 2, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "repair-death", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Evict, WithDeadAfter: true, HostsMayDie: true, Repair: 3, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "repair-sources", Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{2}, Repair: 3, Hosts: alike, Bounds: Bounds{Lose: 1}},
	}, slices.Concat(QuickTrees(), QuickMembers(), QuickRestarts(), QuickRebuilds(), QuickFastPaths(), QuickACKs())...)
}

// Full are the scenarios of make model.
func Full() []Config {
	return append([]Config{
		{Name: "rxe", Receivers: 2, SendWindow: 4, Messages: []int{1, 3}, Hosts: allRXE, Bounds: Bounds{Lose: 2, Duplicate: 1}},
		{Name: "rxe-late", Receivers: 2, SendWindow: 3, Messages: []int{2, 1}, Hosts: allRXE, Bounds: Bounds{Lose: 1, Duplicate: 1, Delay: 1}},
		{Name: "rxe-losses", Receivers: 2, SendWindow: 4, Messages: []int{1, 3}, Hosts: allRXE, Bounds: Bounds{Lose: 5}},
		{Name: "strict", Receivers: 2, SendWindow: 3, Messages: []int{2, 1}, Hosts: allStrict, Bounds: Bounds{Lose: 2, Reorder: 1}},
		{Name: "strict-late", Receivers: 2, SendWindow: 3, Messages: []int{3}, Hosts: allStrict, Bounds: Bounds{Lose: 2, Duplicate: 1, Delay: 1}},
		{Name: "mixed", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Hosts: mixed, Bounds: Bounds{Lose: 1, Duplicate: 1, Reorder: 1, Delay: 1}},
		{Name: "crossed", Receivers: 2, SendWindow: 4, Messages: []int{3, 2}, Hosts: crossed, Bounds: Bounds{Lose: 3}},
		{Name: "three", Receivers: 3, SendWindow: 3, Messages: []int{1, 2}, Hosts: mixed, Bounds: Bounds{Lose: 3}},
		{Name: "three-late", Receivers: 3, SendWindow: 3, Messages: []int{2}, Hosts: crossed, Bounds: Bounds{Lose: 1, Delay: 1}},
		{Name: "rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Hosts: mixed, Bounds: Bounds{Lose: 4}},
		{Name: "rack-late", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{2}, Hosts: crossed, Bounds: Bounds{Lose: 2, Duplicate: 1, Delay: 1}},
		{Name: "rack-three", Tree: Rack, Receivers: 3, SendWindow: 3, Messages: []int{1, 1}, Hosts: mixed, Bounds: Bounds{Lose: 2}},
		{Name: "racks", Tree: Racks, Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Hosts: crossed, Bounds: Bounds{Lose: 3}},
		{Name: "racks-three", Tree: Racks, Receivers: 3, SendWindow: 3, Messages: []int{2}, Hosts: mixed, Bounds: Bounds{Lose: 3}},
		{Name: "rnr-rxe", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Hosts: allRXE, Bounds: Bounds{Lose: 1, Delay: 1}, Withheld: 1},
		{Name: "rnr-strict", Receivers: 2, SendWindow: 3, Messages: []int{1, 1, 1}, Hosts: allStrict, Bounds: Bounds{Lose: 3}, Withheld: 2},
		{Name: "rnr-rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Hosts: mixed, Bounds: Bounds{Lose: 2, Reorder: 1}, Withheld: 2},
		{Name: "write", Receivers: 2, SendWindow: 4, Messages: []int{3, 1}, Write: true, Hosts: mixed, Bounds: Bounds{Lose: 2, Duplicate: 1}},
		{Name: "write-racks", Tree: Racks, Receivers: 2, SendWindow: 3, Messages: []int{2, 1}, Write: true, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "death", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Evict, WithDeadAfter: true, HostsMayDie: true, Hosts: mixed, Bounds: Bounds{Lose: 2, Delay: 1}},
		{Name: "death-three", Receivers: 3, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Evict, WithDeadAfter: true, HostsMayDie: true, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "death-rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{2}, Policy: mcast.Evict, WithDeadAfter: true, HostsMayDie: true, Hosts: allStrict, Bounds: Bounds{Lose: 2, Delay: 1}},
		{Name: "death-racks", Tree: Racks, Receivers: 3, SendWindow: 3, Messages: []int{2}, Policy: mcast.Evict, WithDeadAfter: true, HostsMayDie: true, Hosts: mixed, Bounds: Bounds{Lose: 2}},
		{Name: "two-sources", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Second: []int{2}, Hosts: mixed, Bounds: Bounds{Lose: 2, Duplicate: 1}},
		{Name: "two-sources-late", Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Hosts: alike, Bounds: Bounds{Lose: 1, Duplicate: 1, Reorder: 1, Delay: 2}},
		{Name: "two-sources-three", Receivers: 3, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Hosts: crossed, Bounds: Bounds{Lose: 1, Duplicate: 1, Delay: 1}},
		{Name: "fair-turns", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Second: []int{2, 1}, Fair: true, Hosts: mixed, Bounds: Bounds{Lose: 2}},
		{Name: "fair-turns-late", Receivers: 2, SendWindow: 2, Messages: []int{1, 1}, Second: []int{1}, Fair: true, Hosts: alike, Bounds: Bounds{Lose: 1, Delay: 1}},
		{Name: "fair-turns-repair", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Second: []int{1, 1}, Fair: true, Repair: 3, Hosts: crossed, Bounds: Bounds{Lose: 2}},
		{Name: "fair-turns-quorum", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Second: []int{1, 1}, Fair: true, Policy: mcast.Quorum, Quorum: 1, WithDeadAfter: true, Hosts: mixed, Bounds: Bounds{Lose: 2}},
		{Name: "turns-rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{2}, Turns: true, Hosts: alike, Bounds: Bounds{Lose: 1, Delay: 1}},
		{Name: "turns-racks", Tree: Racks, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Turns: true, Hosts: alike, Bounds: Bounds{Lose: 1, Duplicate: 1, Delay: 1}},
		{Name: "turns-three", Tree: Racks, Receivers: 3, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Turns: true, Hosts: alike, Bounds: Bounds{Lose: 2, Duplicate: 1}},
		{Name: "repair-rxe", Receivers: 2, SendWindow: 4, Messages: []int{1, 3}, Repair: 4, Hosts: allRXE, Bounds: Bounds{Lose: 3}},
		{Name: "repair-strict", Receivers: 2, SendWindow: 3, Messages: []int{3}, Repair: 4, Hosts: allStrict, Bounds: Bounds{Lose: 2, Reorder: 1}},
		{Name: "repair-mixed", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, Hosts: mixed, Bounds: Bounds{Lose: 1, Duplicate: 1, Reorder: 1}},
		{Name: "repair-late", Receivers: 2, SendWindow: 3, Messages: []int{2, 1}, Repair: 3, Hosts: crossed, Bounds: Bounds{Lose: 2, Delay: 1}},
		{Name: "repair-three", Receivers: 3, SendWindow: 3, Messages: []int{1, 2}, Repair: 3, Hosts: mixed, Bounds: Bounds{Lose: 2}},
		{Name: "repair-leg", Receivers: 3, SendWindow: 4, Messages: []int{1, 4}, Repair: 4, Tries: 3, ProbeTimeout: 300 * time.Microsecond, OneLeg: true, Hosts: mixed, Bounds: Bounds{Lose: 2, Duplicate: 1, Reorder: 1}},
		{Name: "repair-leg-racks", Tree: Racks, Receivers: 3, SendWindow: 3, Messages: []int{1, 2}, Repair: 3, Tries: 3, ProbeTimeout: 300 * time.Microsecond, OneLeg: true, Hosts: crossed, Bounds: Bounds{Lose: 2, Reorder: 1}},
		{Name: "repair-write", Receivers: 2, SendWindow: 4, Messages: []int{3, 1}, Write: true, Repair: 4, Hosts: mixed, Bounds: Bounds{Lose: 2, Duplicate: 1}},
		{Name: "repair-room", Receivers: 2, SendWindow: 4, Messages: []int{4}, Repair: 4, PortRoom: 1, Hosts: crossed, Bounds: Bounds{Lose: 2}},
		{Name: "repair-one", Receivers: 2, SendWindow: 3, Messages: []int{2, 1}, Repair: 1, Hosts: crossed, Bounds: Bounds{Lose: 2}},
		{Name: "repair-full", Receivers: 2, SendWindow: 4, Messages: []int{3, 1}, Repair: 2, Hosts: mixed, Bounds: Bounds{Lose: 2}},
		{Name: "repair-full-late", Receivers: 2, SendWindow: 4, Messages: []int{3}, Repair: 2, Hosts: allStrict, Bounds: Bounds{Lose: 1, Delay: 1}},
		{Name: "repair-rnr", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Repair: 3, ProbeTimeout: 20 * time.Microsecond, Hosts: allRXE, Bounds: Bounds{Lose: 1, Delay: 1}, Withheld: 1},
		{Name: "repair-rnr-strict", Receivers: 2, SendWindow: 3, Messages: []int{1, 1, 1}, Repair: 3, ProbeTimeout: 5 * time.Microsecond, Tries: 4, Hosts: allStrict, Bounds: Bounds{Lose: 2}, Withheld: 2},
		{Name: "repair-rnr-rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, ProbeTimeout: 20 * time.Microsecond, Hosts: mixed, Bounds: Bounds{Lose: 1}, Withheld: 1},
		{Name: "repair-rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Repair: 3, Hosts: mixed, Bounds: Bounds{Lose: 2}},
		{Name: "repair-rack-full", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{3}, Repair: 1, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "repair-racks", Tree: Racks, Receivers: 2, SendWindow: 3, Messages: []int{2}, Repair: 2, Hosts: crossed, Bounds: Bounds{Lose: 1, Duplicate: 1}},
		{Name: "repair-racks-late", Tree: Racks, Receivers: 2, SendWindow: 3, Messages: []int{1}, Repair: 2, Hosts: crossed, Bounds: Bounds{Lose: 1, Delay: 1}},
		{Name: "repair-death", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Evict, WithDeadAfter: true, HostsMayDie: true, Repair: 3, Hosts: mixed, Bounds: Bounds{Lose: 2, Delay: 1}},
		{Name: "repair-death-rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{2}, Policy: mcast.Evict, WithDeadAfter: true, HostsMayDie: true, Repair: 2, Hosts: allStrict, Bounds: Bounds{Lose: 2}},
		{Name: "repair-death-racks", Tree: Racks, Receivers: 3, SendWindow: 3, Messages: []int{2}, Policy: mcast.Evict, WithDeadAfter: true, HostsMayDie: true, Repair: 1, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "repair-sources", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Second: []int{2}, Repair: 3, Hosts: alike, Bounds: Bounds{Lose: 2}},
		{Name: "repair-turns-rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{2}, Turns: true, Repair: 2, Hosts: alike, Bounds: Bounds{Lose: 1, Delay: 1}},
		{Name: "repair-turns-racks", Tree: Racks, Receivers: 3, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Turns: true, Repair: 2, Hosts: alike, Bounds: Bounds{Lose: 1, Duplicate: 1}},
	}, slices.Concat(FullTrees(), FullMembers(), FullRestarts(), FullRebuilds(), FullFastPaths(), FullACKs())...)
}
