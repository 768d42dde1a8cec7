// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "slices"

// Scenarios in which the group's tree becomes another one while data flows (R90), and in which two
// switches begin another session. Behind the third switch of a Chain that becomes a Fork, or is
// Turned, is a subtree whose parent changes; Left and Right have one switch that comes and one
// that goes.

// into are the rebuilds that make the tree into others, one after the other.
func into(trees ...Tree) (changes []Change) {
	for _, t := range trees {
		changes = append(changes, Change{Rebuilt: true, To: t})
	}
	return changes
}

// joining is a rebuild by which a host joins, too, or leaves.
func joining(to Tree, leave []int, join ...Join) []Change {
	return []Change{{Rebuilt: true, To: to, Leave: leave, Join: join}}
}

// aside: the last member of a leaf leaves, and another one joins there.
var aside = append([]Change{{Leave: []int{2}}}, joining(Rack, nil, Join{Host: 3, RQ: 1})...)

// Hosts at other switches than the tree's own.
var (
	besideRoot = []int{1, 0, 2} // A at the second switch
	farthest   = []int{2, 1, 0} // A at the third
	opposite   = []int{3, 0, 3} // A at the last of four, a receiver at the first
)

// TinyRebuilds are those of every test run.
func TinyRebuilds() []Config {
	return []Config{
		{Name: "rebuild-chain", Tree: Fork, Receivers: 2, SendWindow: 2, Messages: []int{1}, Changes: into(Chain), Hosts: mixed},
		{Name: "rebuild-fork", Tree: Chain, Receivers: 2, SendWindow: 2, Messages: []int{1}, Changes: into(Fork), Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "rebuild-turned", Tree: Chain, Receivers: 2, SendWindow: 2, Messages: []int{1}, Changes: into(Turned), Hosts: crossed},
		{Name: "rebuild-spine", Tree: Left, Receivers: 2, SendWindow: 2, Messages: []int{1}, Changes: into(Right), Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "rebuild-leaf-source", Tree: Fork, Homes: besideRoot, Receivers: 2, SendWindow: 3, Messages: []int{2}, Changes: into(Chain), Hosts: mixed},
		{Name: "rebuild-far-source", Tree: Chain, Homes: farthest, Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Changes: into(Fork), Hosts: alike},
		{Name: "rebuild-opposite", Tree: Left, Homes: opposite, Receivers: 2, SendWindow: 3, Messages: []int{2}, Changes: into(Right), Hosts: alike},
		{Name: "rebuild-spine-sources", Tree: Left, Receivers: 2, SendWindow: 2, Messages: []int{1}, Second: []int{1}, Changes: into(Right), Hosts: alike},
	}
}

// QuickRebuilds are some of some ten thousand states.
func QuickRebuilds() []Config {
	return []Config{
		{Name: "rebuild-chain", Tree: Fork, Receivers: 2, SendWindow: 2, Messages: []int{1}, Changes: into(Chain), Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "rebuild-turned", Tree: Chain, Receivers: 2, SendWindow: 2, Messages: []int{1}, Changes: into(Turned), Hosts: crossed, Bounds: Bounds{Lose: 1}},
		{Name: "rebuild-spine-late", Tree: Left, Receivers: 2, SendWindow: 2, Messages: []int{1}, Changes: into(Right), Hosts: mixed, Bounds: Bounds{Delay: 1}},
		{Name: "rebuild-chain-sources", Tree: Fork, Receivers: 2, SendWindow: 2, Messages: []int{1}, Second: []int{1}, Changes: into(Chain), Hosts: alike},
		{Name: "rebuild-chain-sessions", Tree: Fork, Receivers: 2, SendWindow: 2, Messages: []int{1}, Changes: into(Chain), Hosts: mixed, Bounds: Bounds{Meet: 1}},
		{Name: "rebuild-aside", Tree: Rack, Homes: []int{0, 0, 1, 1}, Receivers: 3, Outside: 1, SendWindow: 2, Messages: []int{1, 1}, Changes: aside, Hosts: mixed},
		{Name: "rebuild-join", Tree: Fork, Receivers: 3, Outside: 1, SendWindow: 2, Messages: []int{1}, Changes: joining(Chain, nil, Join{Host: 3, RQ: 1}), Hosts: mixed},
	}
}

// FullRebuilds are those of make model.
func FullRebuilds() []Config {
	return []Config{
		{Name: "rebuild-turned-late", Tree: Chain, Receivers: 2, SendWindow: 2, Messages: []int{1}, Changes: into(Turned), Hosts: mixed, Bounds: Bounds{Delay: 1}},
		{Name: "rebuild-turned-leaf-source", Tree: Chain, Homes: besideRoot, Receivers: 2, SendWindow: 3, Messages: []int{2}, Changes: into(Turned), Hosts: crossed},
		{Name: "rebuild-turned-far-source", Tree: Chain, Homes: farthest, Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Changes: into(Turned), Hosts: crossed},
		{Name: "rebuild-turned-sources", Tree: Chain, Receivers: 2, SendWindow: 2, Messages: []int{1}, Second: []int{1}, Changes: into(Turned), Hosts: alike},
		{Name: "sessions-chain", Tree: Chain, Receivers: 2, SendWindow: 2, Messages: []int{1}, Second: []int{1}, Hosts: mixed, Bounds: Bounds{Meet: 1, Lose: 1}},
		{Name: "rebuild-twice", Tree: Chain, Receivers: 2, SendWindow: 2, Messages: []int{1}, Changes: into(Turned, Fork), Hosts: mixed},
		{Name: "rebuild-back", Tree: Left, Receivers: 2, SendWindow: 2, Messages: []int{1}, Changes: into(Right, Left), Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "rebuild-spine-restart", Tree: Left, Receivers: 2, SendWindow: 2, Messages: []int{1}, RestartOf: []int{1, 2}, Timeout: patient, Changes: into(Right), Hosts: mixed, Bounds: Bounds{Restart: 1}},
		stored(Config{Name: "rebuild-joins-restart", Tree: Fork, Homes: []int{0, 1, 2, 1}, Receivers: 3, Outside: 1, SendWindow: 2, Messages: []int{1}, RestartOf: []int{1}, Changes: slices.Concat(arrives, into(Chain)), Hosts: mixed, Bounds: Bounds{Restart: 1}}),
		{Name: "rebuild-spine-repair", Tree: Left, Receivers: 2, SendWindow: 2, Messages: []int{2}, Repair: 3, Changes: into(Right), Hosts: mixed},
		{Name: "rebuild-fork-repair", Tree: Chain, Receivers: 2, SendWindow: 2, Messages: []int{1}, Repair: 3, Changes: into(Fork), Hosts: mixed, Bounds: Bounds{Lose: 2}},
		{Name: "rebuild-leave-join", Tree: Chain, Homes: []int{0, 1, 1, 2}, Receivers: 3, SendWindow: 2, Messages: []int{1, 1}, Changes: joining(Fork, []int{2}), Hosts: mixed},
		{Name: "rebuild-chain-sources", Tree: Fork, Homes: besideRoot, Receivers: 2, SendWindow: 2, Messages: []int{1}, Second: []int{1}, Changes: into(Chain), Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "rebuild-fork-reports", Tree: Chain, Receivers: 2, SendWindow: 2, Messages: []int{1}, Reports: true, Changes: into(Fork), Hosts: mixed},
		{Name: "rebuild-spine-reports", Tree: Left, Receivers: 2, SendWindow: 2, Messages: []int{1}, Reports: true, Changes: into(Right), Hosts: mixed},
		{Name: "rebuild-chain", Tree: Fork, Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Changes: into(Chain), Hosts: mixed},
		{Name: "rebuild-turned", Tree: Chain, Receivers: 2, SendWindow: 3, Messages: []int{2}, Changes: into(Turned), Hosts: crossed, Bounds: Bounds{Reorder: 1}},
		{Name: "rebuild-turned-repair", Tree: Chain, Receivers: 2, SendWindow: 2, Messages: []int{2}, Repair: 3, Changes: into(Turned), Hosts: mixed, Bounds: Bounds{Lose: 1}},
	}
}
