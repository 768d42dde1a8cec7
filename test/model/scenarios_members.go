// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// Changes of the members. C is the last of two receivers, D of three.
var (
	parts           = []Change{{Leave: []int{2}}}
	rejoinScenarios = []Change{{Leave: []int{2}}, {Join: []Join{{Host: 2, RQ: 1}}}}
	renewed         = []Change{{Leave: []int{2}, Join: []Join{{Host: 2, RQ: 1}}}}
	returns         = []Change{{Leave: []int{2}}, {Join: []Join{{Host: 2, Numbers: QueriedNumbers}}}}
	comes           = []Change{{Join: []Join{{Host: 2, RQ: 1}}}}
	arrives         = []Change{{Join: []Join{{Host: 3, RQ: 1}}}}
	hastens         = []Change{{Leave: []int{2}}, {Join: []Join{{Host: 2, Numbers: EarlyNumbers}}}}
	outdated        = []Change{{Leave: []int{2}}, {Join: []Join{{Host: 2, Numbers: OldNumbers}}}}
	again           = []Change{{Again: true}}
	fails           = []Change{{Leave: []int{3, 0}}} // the source and a receiver, in one update
	succeeds        = []Change{{Leave: []int{2}, Join: []Join{{Host: 3, RQ: 1, Slot: 2}}}}
)

// TinyMembers are scenarios of every test run in which members join and leave,
// acknowledge for a quorum, fail, are silent, or are behind a full queue.
func TinyMembers() []Config {
	return []Config{
		{Name: "leave", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Changes: parts, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "rejoin", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Changes: rejoinScenarios, Hosts: mixed},
		{Name: "return", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Changes: returns, Hosts: crossed},
		{Name: "renew", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Changes: renewed, Hosts: alike},
		{Name: "arrive", Receivers: 3, Outside: 1, SendWindow: 3, Messages: []int{1, 2}, Changes: arrives, Hosts: mixed},
		{Name: "succeed", Receivers: 3, Outside: 1, SendWindow: 3, Messages: []int{1, 1}, Changes: succeeds, Hosts: mixed},
		{Name: "rejoin-rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Changes: rejoinScenarios, Hosts: mixed},
		{Name: "rejoin-repair", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, Changes: rejoinScenarios, Hosts: mixed},
		{Name: "remove-both", Receivers: 3, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Turns: true, Policy: mcast.Evict, WithDeadAfter: true, HostsMayDie: true, Changes: fails, Hosts: alike},
		{Name: "remove-source", Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Changes: []Change{{Leave: []int{0}}}, Hosts: mixed},
		{Name: "quorum-never", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Policy: mcast.Quorum, Quorum: 1, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "probe-rejoin", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Probe: true, Changes: rejoinScenarios, Hosts: allRXE},
		{Name: "probe-hasty", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Probe: true, Changes: hastens, Hosts: mixed},
		{Name: "probe-late", Receivers: 2, SendWindow: 3, Messages: []int{1, 1, 1}, Probe: true, Changes: hastens, Hosts: mixed},
		{Name: "probe-old", Receivers: 2, SendWindow: 3, Messages: []int{1, 1, 1}, Probe: true, Changes: outdated, Hosts: mixed},
		{Name: "probe-old-evict", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Evict, WithDeadAfter: true, Probe: true, Changes: outdated, Hosts: crossed},
		{Name: "probe-rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Probe: true, Changes: rejoinScenarios, Hosts: mixed},
		{Name: "probe-repair", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, Probe: true, Changes: rejoinScenarios, Hosts: mixed},
		{Name: "above", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Above: 1, Hosts: crossed, Bounds: Bounds{Duplicate: 1, Delay: 1}},
		{Name: "quorum", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Quorum, Quorum: 1, WithDeadAfter: true, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "quorum-sources", Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Policy: mcast.Quorum, Quorum: 1, WithDeadAfter: true, Hosts: alike, Bounds: Bounds{Lose: 1}},
		{Name: "quorum-repair", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 3, Policy: mcast.Quorum, Quorum: 1, WithDeadAfter: true, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "quorum-rejoin", Receivers: 2, SendWindow: 3, Messages: []int{1, 1, 1}, Policy: mcast.Quorum, Quorum: 1, WithDeadAfter: true, Changes: rejoinScenarios, Hosts: mixed},
		{Name: "fatal-strict", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, ShortBuffer: 2, WithDeadAfter: true, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "fatal-evict", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, ShortBuffer: 1, Policy: mcast.Evict, WithDeadAfter: true, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "fatal-quorum", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, ShortBuffer: 1, Policy: mcast.Quorum, Quorum: 1, WithDeadAfter: true, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "fatal-rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, ShortBuffer: 2, WithDeadAfter: true, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "fatal-repair", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, ShortBuffer: 2, WithDeadAfter: true, Repair: 3, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "dead-strict", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, WithDeadAfter: true, HostsMayDie: true, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "watched", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Evict, WithDeadAfter: true, Hosts: mixed, Bounds: Bounds{Lose: 2}},
		{Name: "watched-repair", Receivers: 2, SendWindow: 3, Messages: []int{1}, Policy: mcast.Evict, WithDeadAfter: true, Repair: 2, Hosts: mixed, Bounds: Bounds{Lose: 3}},
		{Name: "jam", Receivers: 2, SendWindow: 3, Messages: []int{3}, Repair: 3, PortFullRoom: 1, Hosts: mixed, Bounds: Bounds{PortFull: 1}},
		{Name: "jam-rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Repair: 2, Hosts: mixed, Bounds: Bounds{PortFull: 1}},
		{Name: "jam-lost", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Hosts: mixed, Bounds: Bounds{PortFull: 1}},
	}
}

// QuickMembers are some of these scenarios with more faults.
func QuickMembers() []Config {
	return []Config{
		{Name: "window-8", Receivers: 2, SendWindow: 8, Messages: []int{8}, Hosts: allRXE, Bounds: Bounds{Lose: 1}},
		{Name: "window-6-repair", Receivers: 2, SendWindow: 6, Messages: []int{1, 5}, Repair: 6, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "leave-late", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Changes: parts, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "rejoin-losses", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Changes: rejoinScenarios, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "probe-losses", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Probe: true, Changes: rejoinScenarios, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "probe-succeed", Receivers: 3, Outside: 1, SendWindow: 3, Messages: []int{1, 1}, Probe: true, Changes: succeeds, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "probe-late", Receivers: 2, SendWindow: 3, Messages: []int{1, 1, 1}, Probe: true, Changes: hastens, Hosts: crossed, Bounds: Bounds{Duplicate: 1}},
		{Name: "quorum-three", Receivers: 3, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Quorum, Quorum: 2, WithDeadAfter: true, HostsMayDie: true, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "watched-three", Receivers: 3, SendWindow: 3, Messages: []int{1}, Policy: mcast.Evict, WithDeadAfter: true, Hosts: crossed, Bounds: Bounds{Lose: 3}},
		{Name: "watched-repair", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Evict, WithDeadAfter: true, Repair: 3, Hosts: mixed, Bounds: Bounds{Lose: 3}},
		{Name: "jam-losses", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Repair: 3, PortFullRoom: 1, Hosts: mixed, Bounds: Bounds{Lose: 1, PortFull: 1}},
	}
}

// FullMembers are the scenarios of make model.
func FullMembers() []Config {
	return []Config{
		{Name: "window-8", Receivers: 2, SendWindow: 8, Messages: []int{8}, Hosts: mixed, Bounds: Bounds{Lose: 2}},
		{Name: "window-6", Receivers: 2, SendWindow: 6, Messages: []int{1, 5}, Hosts: crossed, Bounds: Bounds{Lose: 1, Duplicate: 1}},
		{Name: "window-8-repair", Receivers: 2, SendWindow: 8, Messages: []int{8}, Repair: 8, Hosts: allRXE, Bounds: Bounds{Lose: 1}},
		{Name: "window-6-repair-full", Receivers: 2, SendWindow: 6, Messages: []int{6}, Repair: 3, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "leave", Receivers: 3, SendWindow: 3, Messages: []int{1, 1}, Changes: parts, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "leave-repair", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Repair: 3, Changes: parts, Hosts: mixed, Bounds: Bounds{Lose: 2}},
		{Name: "rejoin", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Changes: rejoinScenarios, Hosts: crossed, Bounds: Bounds{Lose: 2}},
		{Name: "return", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Changes: returns, Hosts: mixed, Bounds: Bounds{Lose: 2}},
		{Name: "arrive", Receivers: 3, Outside: 1, SendWindow: 3, Messages: []int{1, 2}, Changes: arrives, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "succeed", Receivers: 3, Outside: 1, SendWindow: 3, Messages: []int{1, 2}, Changes: succeeds, Hosts: crossed, Bounds: Bounds{Lose: 2}},
		{Name: "rejoin-rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Changes: rejoinScenarios, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "rejoin-repair", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Repair: 3, Changes: rejoinScenarios, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "probe-rejoin", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Probe: true, Changes: rejoinScenarios, Hosts: allRXE, Bounds: Bounds{Lose: 1, Duplicate: 1}},
		{Name: "probe-hasty", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Probe: true, Changes: hastens, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "probe-old", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Probe: true, Changes: outdated, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "probe-repair", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Repair: 3, Probe: true, Changes: rejoinScenarios, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "probe-quorum", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Quorum, Quorum: 1, WithDeadAfter: true, Probe: true, Changes: outdated, Hosts: mixed},
		{Name: "probe-late", Receivers: 2, SendWindow: 3, Messages: []int{1, 1, 1}, Probe: true, Changes: hastens, Hosts: mixed, Bounds: Bounds{Lose: 1, Duplicate: 1}},
		{Name: "probe-late-timers", Receivers: 2, SendWindow: 3, Messages: []int{1, 1, 1}, Timeout: 8 * time.Millisecond, Probe: true, Changes: hastens, Hosts: crossed, Bounds: Bounds{Delay: 2}},
		{Name: "probe-again", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Second: []int{1}, EndlessRetries: true, Probe: true, Changes: again, Hosts: alike, Bounds: Bounds{Lose: 1}},
		{Name: "quorum", Receivers: 2, SendWindow: 4, Messages: []int{1, 3}, Policy: mcast.Quorum, Quorum: 1, WithDeadAfter: true, Hosts: mixed, Bounds: Bounds{Lose: 2}},
		{Name: "quorum-never", Receivers: 3, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Quorum, Quorum: 2, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "quorum-three", Receivers: 3, SendWindow: 3, Messages: []int{2}, Policy: mcast.Quorum, Quorum: 2, WithDeadAfter: true, HostsMayDie: true, Hosts: crossed, Bounds: Bounds{Lose: 2}},
		{Name: "quorum-late", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Quorum, Quorum: 1, WithDeadAfter: true, Hosts: mixed, Bounds: Bounds{Lose: 1, Delay: 1}},
		{Name: "quorum-sources", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Second: []int{2}, Policy: mcast.Quorum, Quorum: 1, WithDeadAfter: true, Hosts: mixed, Bounds: Bounds{Lose: 1, Duplicate: 1}},
		{Name: "quorum-repair", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Repair: 3, Policy: mcast.Quorum, Quorum: 1, WithDeadAfter: true, HostsMayDie: true, Hosts: mixed, Bounds: Bounds{Lose: 2}},
		{Name: "quorum-repair-full", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Repair: 1, Policy: mcast.Quorum, Quorum: 1, WithDeadAfter: true, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "remove-both", Receivers: 3, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Turns: true, Policy: mcast.Evict, WithDeadAfter: true, HostsMayDie: true, Changes: fails, Hosts: alike, Bounds: Bounds{Lose: 1}},
		{Name: "fatal-strict", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, ShortBuffer: 2, WithDeadAfter: true, Hosts: allStrict, Bounds: Bounds{Lose: 2}},
		{Name: "fatal-evict", Receivers: 3, SendWindow: 3, Messages: []int{1, 1}, ShortBuffer: 1, Policy: mcast.Evict, WithDeadAfter: true, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "fatal-quorum", Receivers: 3, SendWindow: 3, Messages: []int{1, 1}, ShortBuffer: 1, Policy: mcast.Quorum, Quorum: 2, WithDeadAfter: true, Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "fatal-racks", Tree: Racks, Receivers: 3, SendWindow: 3, Messages: []int{1, 1}, ShortBuffer: 2, WithDeadAfter: true, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "fatal-repair", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, ShortBuffer: 2, WithDeadAfter: true, Repair: 3, Hosts: mixed, Bounds: Bounds{Lose: 2}},
		{Name: "dead-strict", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, WithDeadAfter: true, HostsMayDie: true, Hosts: allStrict, Bounds: Bounds{Lose: 2}},
		{Name: "watched", Receivers: 3, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Evict, WithDeadAfter: true, Hosts: mixed, Bounds: Bounds{Lose: 3}},
		{Name: "watched-late", Receivers: 3, SendWindow: 3, Messages: []int{1}, Policy: mcast.Evict, WithDeadAfter: true, Hosts: crossed, Bounds: Bounds{Lose: 1, Duplicate: 1, Delay: 2}},
		{Name: "watched-repair", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Policy: mcast.Evict, WithDeadAfter: true, Repair: 3, Hosts: mixed, Bounds: Bounds{Lose: 4}},
		{Name: "watched-repair-late", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Evict, WithDeadAfter: true, Repair: 3, Hosts: crossed, Bounds: Bounds{Lose: 2, Delay: 1}},
		{Name: "jam-losses", Receivers: 2, SendWindow: 4, Messages: []int{4}, Repair: 4, PortFullRoom: 1, Hosts: mixed, Bounds: Bounds{Lose: 1, PortFull: 2}},
		{Name: "jam-room", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Repair: 3, PortRoom: 1, PortFullRoom: 2, Hosts: crossed, Bounds: Bounds{Lose: 1, PortFull: 1}},
		{Name: "jam-full", Receivers: 2, SendWindow: 3, Messages: []int{3}, Repair: 1, Hosts: mixed, Bounds: Bounds{Lose: 1, PortFull: 1}},
		{Name: "jam-watched", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Policy: mcast.Evict, WithDeadAfter: true, Repair: 3, Hosts: mixed, Bounds: Bounds{Lose: 1, PortFull: 2}},
		{Name: "jam-racks", Tree: Racks, Receivers: 2, SendWindow: 3, Messages: []int{2}, Repair: 2, Hosts: crossed, Bounds: Bounds{Lose: 1, PortFull: 1}},
	}
}
