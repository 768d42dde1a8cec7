// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

// Scenarios of two sources that begin at any moment, at once too, at two switches of a tree.
// With Reports a token's message may be lost, doubled, delayed and overtaken like any
// packet.

// TinyTrees are those of every test run.
func TinyTrees() []Config {
	return []Config{
		{Name: "contention-rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Reports: true, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "contention-leaves", Tree: Leaves, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Hosts: alike, Bounds: Bounds{Lose: 1}},
	}
}

// QuickTrees are some more, of some hundred thousand states.
func QuickTrees() []Config {
	return []Config{
		{Name: "contention-leaves", Tree: Leaves, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Reports: true, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "contention-racks", Tree: Racks, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Hosts: crossed, Bounds: Bounds{Lose: 1, Delay: 1}},
	}
}

// FullTrees are those of make model.
func FullTrees() []Config {
	return []Config{
		{Name: "contention-rack", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Reports: true, Hosts: alike, Bounds: Bounds{Lose: 1, Duplicate: 1}},
		{Name: "contention-rack-late", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Reports: true, Hosts: crossed, Bounds: Bounds{Lose: 1, Delay: 1}},
		{Name: "contention-rack-fair", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Second: []int{1, 1}, Fair: true, Hosts: mixed, Bounds: Bounds{Lose: 1}},
		{Name: "contention-rack-repair", Tree: Rack, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{2}, Repair: 2, Hosts: mixed, Bounds: Bounds{Lose: 2}},
		{Name: "contention-racks", Tree: Racks, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Hosts: alike, Bounds: Bounds{Lose: 1, Delay: 1}},
		{Name: "contention-leaves", Tree: Leaves, Receivers: 2, SendWindow: 3, Messages: []int{1}, Second: []int{1}, Reports: true, Hosts: mixed, Bounds: Bounds{Lose: 2}},
		{Name: "contention-leaves-three", Tree: Leaves, Receivers: 3, SendWindow: 3, Messages: []int{1}, Second: []int{2}, Hosts: crossed, Bounds: Bounds{Lose: 2}},
	}
}
