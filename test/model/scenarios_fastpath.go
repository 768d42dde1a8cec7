// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// Scenarios in which a fast path forwards beside the switch (R97, R98).

// TinyFastPaths are part of Tiny.
func TinyFastPaths() []Config {
	return []Config{
		{Name: "fast", Receivers: 2, SendWindow: 3, Messages: []int{4}, Repair: 4, FastPath: 4, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "fast-ring", Receivers: 2, SendWindow: 3, Messages: []int{4}, Repair: 4, FastPath: 2, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "fast-asks", Receivers: 2, SendWindow: 3, Messages: []int{4}, Repair: 4, FastPath: 4, AckEvery: 2, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "fast-rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{2}, Repair: 3, FastPath: 4, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "fast-death", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, FastPath: 4, Policy: mcast.Evict, WithDeadAfter: true, HostsMayDie: true, Hosts: mixed},
		{Name: "fast-quorum", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, FastPath: 4, Policy: mcast.Quorum, Quorum: 1, WithDeadAfter: true, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "fast-idle", Receivers: 2, SendWindow: 3, Messages: []int{3}, Repair: 4, FastPath: 4, Hosts: mixed, Bounds: Bounds{Idle: 1, Lose: 1}},
		{Name: "fast-idle-rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, FastPath: 4, Hosts: crossed, Bounds: Bounds{Idle: 2}},
		{Name: "fast-turns", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Turns: true, Repair: 2, FastPath: 4, Hosts: alike, Bounds: Bounds{Lose: 1}},
	}
}

// TinyACKs, of fast paths that count ACKs (R113), are part of Tiny.
func TinyACKs() []Config {
	return []Config{
		{Name: "acks", Receivers: 2, SendWindow: 3, Messages: []int{2}, Repair: 4, FastPath: 4, ACKs: true, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "acks-ring", Receivers: 1, SendWindow: 3, Messages: []int{1, 2, 1}, Repair: 4, FastPath: 2, ACKs: true, Hosts: crossed},
		{Name: "acks-idle", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 4, FastPath: 4, ACKs: true, Hosts: mixed, Bounds: Bounds{Idle: 1}},
		{Name: "acks-death", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, FastPath: 4, ACKs: true, Policy: mcast.Evict, WithDeadAfter: true, HostsMayDie: true, Hosts: mixed},
	}
}

// QuickACKs are part of Quick.
func QuickACKs() []Config {
	return []Config{
		{Name: "acks-again", Receivers: 2, SendWindow: 3, Messages: []int{2}, Repair: 4, FastPath: 4, ACKs: true, Hosts: allRXE, Bounds: Bounds{Duplicate: 1}},
		{Name: "acks-overtaken", Receivers: 2, SendWindow: 3, Messages: []int{2}, Repair: 4, FastPath: 4, ACKs: true, Hosts: mixed, Bounds: Bounds{Reorder: 1}},
		{Name: "acks-back", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, FastPath: 4, ACKs: true, Hosts: mixed, Changes: rejoinScenarios},
		{Name: "acks-late", Receivers: 2, SendWindow: 3, Messages: []int{3}, Repair: 4, FastPath: 4, ACKs: true, Hosts: allStrict, Bounds: Bounds{Delay: 1}},
		{Name: "acks-rnr", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, FastPath: 4, ACKs: true, ProbeTimeout: 20 * time.Microsecond, Hosts: mixed, Withheld: 1, Bounds: Bounds{Idle: 1}},
		{Name: "acks-fatal", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, ShortBuffer: 2, Policy: mcast.Evict, Repair: 3, FastPath: 4, ACKs: true, Hosts: mixed},
	}
}

// FullACKs are part of Full.
func FullACKs() []Config {
	return append(QuickACKs(),
		Config{Name: "acks-second", Receivers: 2, SendWindow: 2, Messages: []int{1}, Second: []int{1}, Repair: 3, FastPath: 4, ACKs: true, Hosts: alike},
		Config{Name: "acks-ring-lost", Receivers: 1, SendWindow: 3, Messages: []int{1, 2, 1}, Repair: 4, FastPath: 2, ACKs: true, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		Config{Name: "acks-ring-two", Receivers: 2, SendWindow: 3, Messages: []int{1, 2, 1}, Repair: 4, FastPath: 2, ACKs: true, Hosts: crossed},
		Config{Name: "acks-ring-losses", Receivers: 2, SendWindow: 3, Messages: []int{4}, Repair: 4, FastPath: 2, ACKs: true, Hosts: mixed, Bounds: Bounds{Lose: 2}},
		Config{Name: "acks-ring-again", Receivers: 2, SendWindow: 3, Messages: []int{1, 1, 1, 1}, Repair: 4, FastPath: 2, ACKs: true, Hosts: allRXE, Bounds: Bounds{Duplicate: 1, Idle: 1}},
		Config{Name: "acks-asks", Receivers: 1, SendWindow: 3, Messages: []int{4}, Repair: 4, FastPath: 4, ACKs: true, AckEvery: 2, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		Config{Name: "acks-reorder", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Repair: 4, FastPath: 4, ACKs: true, Hosts: mixed, Bounds: Bounds{Reorder: 1}},
		Config{Name: "acks-twice", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 4, FastPath: 4, ACKs: true, Hosts: allRXE, Bounds: Bounds{Duplicate: 1}},
		Config{Name: "acks-sources", Receivers: 2, SendWindow: 2, Messages: []int{1}, Second: []int{1}, Repair: 3, FastPath: 4, ACKs: true, Hosts: alike, Bounds: Bounds{Lose: 1}},
		Config{Name: "acks-rejoin", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, FastPath: 4, ACKs: true, Hosts: mixed, Changes: rejoinScenarios, Bounds: Bounds{Idle: 1}},
		Config{Name: "acks-messages", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Repair: 4, FastPath: 4, ACKs: true, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		Config{Name: "acks-three", Receivers: 3, SendWindow: 2, Messages: []int{2}, Repair: 4, FastPath: 4, ACKs: true, Hosts: mixed, Bounds: Bounds{Idle: 1}},
		Config{Name: "acks-losses", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Repair: 4, FastPath: 4, ACKs: true, Hosts: crossed, Bounds: Bounds{Lose: 2}},
	)
}

// QuickFastPaths are part of Quick.
func QuickFastPaths() []Config {
	return []Config{
		{Name: "fast-messages", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Repair: 4, FastPath: 4, Hosts: allRXE, Bounds: Bounds{Lose: 1}},
		{Name: "fast-strict", Receivers: 2, SendWindow: 3, Messages: []int{3}, Repair: 4, FastPath: 4, Hosts: allStrict, Bounds: Bounds{Reorder: 1}},
		{Name: "fast-late", Receivers: 2, SendWindow: 3, Messages: []int{3}, Repair: 4, FastPath: 4, Hosts: allStrict, Bounds: Bounds{Delay: 1}},
		{Name: "fast-rnr", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, FastPath: 4, ProbeTimeout: 20 * time.Microsecond, Hosts: mixed, Withheld: 1, Bounds: Bounds{Lose: 1}},
		{Name: "fast-sources", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Second: []int{2}, Repair: 3, FastPath: 4, Hosts: alike, Bounds: Bounds{Lose: 1}},
		{Name: "fast-fair", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Second: []int{1, 1}, Fair: true, Repair: 3, FastPath: 4, Hosts: alike},
		{Name: "fast-idle-late", Receivers: 2, SendWindow: 3, Messages: []int{3}, Repair: 4, FastPath: 4, Hosts: mixed, Bounds: Bounds{Idle: 1, Delay: 1}},
		{Name: "fast-idle-ring", Receivers: 2, SendWindow: 3, Messages: []int{4}, Repair: 4, FastPath: 2, Hosts: crossed, Bounds: Bounds{Idle: 1, Lose: 1}},
		{Name: "fast-idle-sources", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Second: []int{2}, Repair: 3, FastPath: 4, Hosts: alike, Bounds: Bounds{Idle: 1}},
		{Name: "fast-idle-rejoin", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, FastPath: 4, Hosts: mixed, Changes: rejoinScenarios, Bounds: Bounds{Idle: 1}},
		{Name: "fast-idle-rnr", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, FastPath: 4, ProbeTimeout: 20 * time.Microsecond, Hosts: mixed, Withheld: 1, Bounds: Bounds{Idle: 1}},
		{Name: "fast-rebuild", Tree: Left, Receivers: 2, SendWindow: 2, Messages: []int{1}, Repair: 3, FastPath: 4, Changes: into(Right), Hosts: mixed},
		{Name: "fast-rejoin", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, FastPath: 4, Hosts: mixed, Changes: rejoinScenarios},
	}
}

// FullFastPaths are part of Full.
func FullFastPaths() []Config {
	return append(QuickFastPaths(),
		Config{Name: "fast-three", Receivers: 3, SendWindow: 3, Messages: []int{3}, Repair: 4, FastPath: 4, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		Config{Name: "fast-losses", Receivers: 2, SendWindow: 3, Messages: []int{4}, Repair: 4, FastPath: 4, Hosts: crossed, Bounds: Bounds{Lose: 2}},
		Config{Name: "fast-mixed", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Repair: 4, FastPath: 4, Hosts: crossed, Bounds: Bounds{Duplicate: 1, Reorder: 1}},
		Config{Name: "fast-leaves", Tree: Leaves, Receivers: 2, SendWindow: 3, Messages: []int{2}, Second: []int{1}, Repair: 2, FastPath: 4, Hosts: alike},
		Config{Name: "fast-idle-ring", Receivers: 2, SendWindow: 3, Messages: []int{4}, Repair: 4, FastPath: 2, Hosts: crossed, Bounds: Bounds{Idle: 2, Reorder: 1}},
		Config{Name: "fast-restart", Receivers: 2, SendWindow: 2, Messages: []int{2}, Repair: 4, FastPath: 4, Hosts: mixed, Probe: true, Stored: true, Bounds: Bounds{Restart: 1}},
	)
}
