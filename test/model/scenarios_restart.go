// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// Scenarios in which a switch restarts at any moment: with the positions in its file (R83), and
// in a tree with those of its neighbours (R89).

// patient is a retransmission timeout after which a source repeats once while the switch
// waits for what was on its way at the restart.
const patient = 12 * time.Millisecond

// stored adds a file to a scenario.
func stored(c Config) Config {
	c.Probe, c.Stored = true, true
	if c.Timeout == 0 {
		c.Timeout = patient
	}
	return c
}

// storedChanges adds a file to a scenario in which hosts are told of changes of the members when these are in it.
func storedChanges(c Config) Config {
	c.StoredChanges = true
	return stored(c)
}

// TinyRestarts are those of every test run.
func TinyRestarts() []Config {
	return []Config{
		stored(Config{Name: "restart", Receivers: 2, SendWindow: 3, Messages: []int{1}, Hosts: mixed, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "restart-fatal", Receivers: 2, SendWindow: 3, Messages: []int{1}, ShortBuffer: 1, WithDeadAfter: true, Hosts: crossed, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "restart-silent", Receivers: 2, SendWindow: 2, Messages: []int{1}, Policy: mcast.Evict, WithDeadAfter: true, HostsMayDie: true, Hosts: crossed, Bounds: Bounds{Restart: 1}}),
		{Name: "restart-spine", Tree: Spine, Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, RestartOf: []int{0}, Timeout: patient, Hosts: mixed, Bounds: Bounds{Restart: 1}},
		stored(Config{Name: "restart-leaf", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1}, RestartOf: []int{1}, Hosts: mixed, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "hold", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, Hosts: mixed, Bounds: Bounds{Store: 1}}),
		stored(Config{Name: "restart-leaf-holds", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1}, Repair: 2, RestartOf: []int{1}, Hosts: mixed, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "restart-root", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1}, RestartOf: []int{0}, Hosts: mixed, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "restart-root-sources", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, RestartOf: []int{0}, Hosts: alike, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "restart-both", Tree: Rack, Receivers: 2, SendWindow: 2, Messages: []int{1}, Hosts: mixed, Bounds: Bounds{Restart: 2}}),
	}
}

// QuickRestarts are some with more packets, and with faults of the file.
func QuickRestarts() []Config {
	return []Config{
		stored(Config{Name: "restart-half", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Hosts: mixed, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "restart-evict", Receivers: 2, SendWindow: 3, Messages: []int{1}, Policy: mcast.Evict, WithDeadAfter: true, HostsMayDie: true, Hosts: mixed, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "restart-old-file", Receivers: 2, SendWindow: 2, Messages: []int{1, 1}, FileFails: true, Hosts: mixed, Bounds: Bounds{Restart: 1}}),
		storedChanges(Config{Name: "restart-old-file-joins", Receivers: 2, Outside: 1, SendWindow: 2, Messages: []int{2}, Changes: comes, FileFails: true, Hosts: alike, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "restart-repair", Receivers: 2, SendWindow: 3, Messages: []int{2}, Repair: 3, Hosts: crossed, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "restart-leaf-first", Tree: Rack, Receivers: 2, SendWindow: 2, Messages: []int{2}, Repair: 2, RestartOf: []int{1}, Hosts: mixed, Bounds: Bounds{Restart: 1}}),
		{Name: "restart-spine-sources", Tree: Spine, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, RestartOf: []int{0}, Timeout: patient, Hosts: crossed, Bounds: Bounds{Restart: 1}},
		{Name: "restart-spine-repair", Tree: Spine, Receivers: 2, SendWindow: 3, Messages: []int{2}, Repair: 3, RestartOf: []int{0}, Timeout: patient, Hosts: crossed, Bounds: Bounds{Restart: 1}},
		stored(Config{Name: "restart-leaf-sources", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, RestartOf: []int{1}, Hosts: alike, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "hold-losses", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{2}, Second: []int{1}, Repair: 3, Hosts: crossed, Bounds: Bounds{Lose: 1}}),
		stored(Config{Name: "restart-leaf-losses", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{2}, RestartOf: []int{1}, Hosts: mixed, Bounds: Bounds{Restart: 1, Lose: 1}}),
		stored(Config{Name: "restart-root-losses", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{2}, RestartOf: []int{0}, Hosts: mixed, Bounds: Bounds{Restart: 1, Lose: 1}}),
		stored(Config{Name: "restart-source-leaf", Tree: Spine, Receivers: 2, SendWindow: 3, Messages: []int{1}, RestartOf: []int{1}, Hosts: mixed, Bounds: Bounds{Restart: 1, Lose: 1}}),
		stored(Config{Name: "restart-receivers-leaf", Tree: Spine, Receivers: 2, SendWindow: 3, Messages: []int{1}, RestartOf: []int{2}, Hosts: mixed, Bounds: Bounds{Restart: 1, Lose: 1}}),
		storedChanges(Config{Name: "restart-joins", Receivers: 2, Outside: 1, SendWindow: 2, Messages: []int{1}, Changes: comes, Hosts: alike, Bounds: Bounds{Restart: 1}}),
		storedChanges(Config{Name: "restart-leaves", Receivers: 2, SendWindow: 2, Messages: []int{1}, Changes: parts, Hosts: alike, Bounds: Bounds{Restart: 1}}),
	}
}

// FullRestarts are those of make model.
func FullRestarts() []Config {
	return []Config{
		stored(Config{Name: "restart", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Hosts: mixed, Bounds: Bounds{Restart: 1, Lose: 1}}),
		stored(Config{Name: "restart-half", Receivers: 2, SendWindow: 3, Messages: []int{3}, Hosts: alike, Bounds: Bounds{Restart: 1, Lose: 1}}),
		stored(Config{Name: "restart-late", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Hosts: mixed, Bounds: Bounds{Restart: 1, Delay: 1}}),
		stored(Config{Name: "restart-twice", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Timeout: 2 * patient, Hosts: mixed, Bounds: Bounds{Restart: 2}}),
		stored(Config{Name: "restart-stored-late", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Hosts: crossed, Bounds: Bounds{Restart: 1, Store: 1}}),
		stored(Config{Name: "restart-write", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Write: true, Hosts: allStrict, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "restart-rnr", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Withheld: 1, Hosts: mixed, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "restart-sources", Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Hosts: allStrict, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "restart-turns", Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Turns: true, Hosts: alike, Bounds: Bounds{Restart: 1, Lose: 1}}),
		stored(Config{Name: "restart-file-fails", Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, FileFails: true, Hosts: mixed, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "restart-file-fails-turns", Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Turns: true, FileFails: true, Hosts: alike, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "restart-old-file-evict", Receivers: 2, SendWindow: 2, Messages: []int{1, 1}, Policy: mcast.Evict, WithDeadAfter: true, FileFails: true, Hosts: crossed, Bounds: Bounds{Restart: 1}}),
		storedChanges(Config{Name: "restart-old-file-joins", Receivers: 2, Outside: 1, SendWindow: 2, Messages: []int{1, 2}, Changes: comes, FileFails: true, Hosts: alike, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "restart-strict", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, WithDeadAfter: true, HostsMayDie: true, Hosts: mixed, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "restart-evict", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Evict, WithDeadAfter: true, HostsMayDie: true, Hosts: mixed, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "restart-evict-losses", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Evict, WithDeadAfter: true, Hosts: mixed, Bounds: Bounds{Restart: 1, Lose: 1}}),
		stored(Config{Name: "restart-quorum", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Quorum, Quorum: 1, WithDeadAfter: true, Hosts: mixed, Bounds: Bounds{Restart: 1, Lose: 1}}),
		stored(Config{Name: "restart-fatal", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, ShortBuffer: 2, Policy: mcast.Evict, WithDeadAfter: true, Hosts: mixed, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "restart-rejoin", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Changes: rejoinScenarios, Hosts: mixed, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "restart-repair", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, Hosts: mixed, Bounds: Bounds{Restart: 1, Lose: 1}}),
		stored(Config{Name: "restart-repair-half", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Repair: 2, Hosts: crossed, Bounds: Bounds{Restart: 1}}),
		{Name: "restart-spine-window", Tree: Spine, Receivers: 2, SendWindow: 3, Messages: []int{3}, Repair: 4, ProbeTimeout: 2 * patient, RestartOf: []int{0}, Timeout: patient, Hosts: crossed, Bounds: Bounds{Restart: 1}},
		{Name: "restart-spine", Tree: Spine, Receivers: 2, SendWindow: 3, Messages: []int{2}, RestartOf: []int{0}, Timeout: patient, Hosts: crossed, Bounds: Bounds{Restart: 1, Lose: 1}},
		stored(Config{Name: "restart-leaf", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{2}, RestartOf: []int{1}, Hosts: mixed, Bounds: Bounds{Restart: 1, Lose: 1}}),
		stored(Config{Name: "restart-root-sources", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, RestartOf: []int{0}, Hosts: alike, Bounds: Bounds{Restart: 1}}),
		stored(Config{Name: "restart-both", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{2}, Hosts: mixed, Bounds: Bounds{Restart: 2}}),
		storedChanges(Config{Name: "restart-joins", Receivers: 2, Outside: 1, SendWindow: 2, Messages: []int{1, 1}, Changes: comes, Hosts: mixed, Bounds: Bounds{Restart: 1}}),
		storedChanges(Config{Name: "restart-joins-losses", Receivers: 2, Outside: 1, SendWindow: 2, Messages: []int{1}, Changes: comes, Hosts: mixed, Bounds: Bounds{Restart: 1, Lose: 1}}),
		storedChanges(Config{Name: "restart-leaves", Receivers: 2, SendWindow: 2, Messages: []int{1, 1}, Changes: parts, Hosts: mixed, Bounds: Bounds{Restart: 1}}),
		storedChanges(Config{Name: "restart-leaves-evict", Receivers: 2, SendWindow: 2, Messages: []int{1}, Policy: mcast.Evict, WithDeadAfter: true, Changes: parts, Hosts: mixed, Bounds: Bounds{Restart: 1}}),
		storedChanges(Config{Name: "restart-leaves-twice", Receivers: 2, SendWindow: 2, Messages: []int{1}, Timeout: 2 * patient, Changes: parts, Hosts: mixed, Bounds: Bounds{Restart: 2}}),
		stored(Config{Name: "restart-both-sources", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Hosts: alike, Bounds: Bounds{Restart: 2}}),
	}
}
