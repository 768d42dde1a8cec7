// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"os"
	"testing"
	"time"
)

// Trees of the searches: of each switch the one above it, of each member its switch.
var (
	onTop     = tree{above: []int{-1, 0}, members: []int{0, 0, 1}}       // a leaf below a leaf
	leaves    = tree{above: []int{-1, 0, 0}, members: []int{0, 1, 2}}    // two leaves below a root
	crowded   = tree{above: []int{-1, 0, 0}, members: []int{0, 1, 1, 2}} // two members at one of them
	chain     = tree{above: []int{-1, 0, 1}, members: []int{0, 0, 2}}    // a switch between two
	twoLevels = tree{above: []int{-1, 0, 0, 1, 1, 2, 2}, members: []int{0, 3, 4, 5, 6}, eager: true}
	moved     = tree{above: []int{-1, 0, 1}, members: []int{0, 0, 2}, moves: 2, to: 0}
	attached  = tree{above: []int{-1, 0, 0, 1}, members: []int{0, 0, 3}, moves: 3, to: 2}
)

func (t tree) rejoining() tree { t.rejoin = true; return t }
func (t tree) inTime() tree    { t.eager = true; return t }

// scenario is a tree, what may go wrong, and how many messages each member sends.
type scenario struct {
	name  string
	tree  tree
	turns uint8
	bounds
	boot bool // begins before anybody has joined; else when all have
	full bool // searched by make model only
}

var scenarios = []scenario{
	{name: "start", tree: leaves, turns: 1, boot: true},
	{name: "start, messages lost", tree: onTop, turns: 1, boot: true, bounds: bounds{Lose: 2, Delay: 1}},
	{name: "start, restart", tree: onTop, turns: 1, boot: true, bounds: bounds{Restart: 1}},
	{name: "turns", tree: leaves, turns: 3},
	{name: "turns at one leaf", tree: crowded, turns: 2},
	{name: "messages", tree: onTop, turns: 1, bounds: bounds{Lose: 1, Duplicate: 1, Reorder: 1, Delay: 1}},
	{name: "messages, two leaves", tree: leaves, turns: 1, bounds: bounds{Lose: 1, Delay: 1}},
	{name: "restart, data delayed", tree: onTop, turns: 1, bounds: bounds{Restart: 1, Lose: 1}},
	{name: "two restarts", tree: onTop, turns: 1, bounds: bounds{Restart: 2}},
	{name: "restart in the middle", tree: chain.inTime(), turns: 1, bounds: bounds{Restart: 1}},
	{name: "cut and rebuilt", tree: onTop, turns: 2, bounds: bounds{Cut: 1}},
	{name: "cut twice", tree: onTop, turns: 1, bounds: bounds{Cut: 2}},
	{name: "cut for good", tree: onTop, turns: 1, bounds: bounds{Cut: 1, Remove: 1}},
	{name: "removed and back", tree: onTop.rejoining(), turns: 1, bounds: bounds{Cut: 1, Remove: 1}},
	{name: "members leave or miss their turn", tree: crowded, turns: 1, bounds: bounds{Leave: 1, Miss: 1}},
	{name: "attached elsewhere", tree: moved.inTime(), turns: 1, bounds: bounds{Move: 1}},

	{name: "start, two restarts", tree: onTop, turns: 1, boot: true, bounds: bounds{Restart: 2, Lose: 1}, full: true},
	{name: "restart, two leaves", tree: leaves, turns: 1, bounds: bounds{Restart: 1}, full: true},
	{name: "messages, more turns", tree: onTop, turns: 2, bounds: bounds{Lose: 1, Duplicate: 1, Reorder: 1, Delay: 1}, full: true},
	{name: "messages, two leaves, all", tree: leaves.inTime(), turns: 1, bounds: bounds{Lose: 1, Duplicate: 1, Reorder: 1, Delay: 1}, full: true},
	{name: "restart, data delayed, two leaves", tree: leaves, turns: 1, bounds: bounds{Restart: 1, Lose: 1}, full: true},
	{name: "two restarts, two leaves", tree: leaves.inTime(), turns: 1, bounds: bounds{Restart: 2}, full: true},
	{name: "two restarts in the middle", tree: chain.inTime(), turns: 1, bounds: bounds{Restart: 2}, full: true},
	{name: "restart and cut", tree: onTop, turns: 1, bounds: bounds{Restart: 1, Cut: 1, Lose: 1}, full: true},
	{name: "cut, two leaves", tree: leaves, turns: 1, bounds: bounds{Cut: 1}, full: true},
	{name: "cut in the middle", tree: chain, turns: 1, bounds: bounds{Cut: 1}, full: true},
	{name: "cut for good, two leaves", tree: leaves, turns: 1, bounds: bounds{Cut: 1, Remove: 1}, full: true},
	{name: "removed and back, in the middle", tree: chain.inTime().rejoining(), turns: 1, bounds: bounds{Cut: 1, Remove: 1}, full: true},
	{name: "removed and back, two leaves", tree: leaves.inTime().rejoining(), turns: 1, bounds: bounds{Cut: 1, Remove: 1}, full: true},
	{name: "attached elsewhere, restart", tree: moved.inTime(), turns: 1, bounds: bounds{Move: 1, Restart: 1}, full: true},
	{name: "attached to another branch", tree: attached.inTime(), turns: 1, bounds: bounds{Move: 1}, full: true},
	{name: "two levels", tree: twoLevels, turns: 1, full: true},
	{name: "two levels, restart", tree: twoLevels, turns: 1, bounds: bounds{Restart: 1}, full: true},
}

// Limits of the searches, in states.
const (
	maxStates      = 200_000
	maxStatesModel = 2_000_000 // the limit of make model
)

// TestModel searches the scenarios: GLEAM_MODEL=full all of them, else the small ones.
func TestModel(t *testing.T) {
	full, limit := os.Getenv("GLEAM_MODEL") == "full", maxStates
	if full {
		limit = maxStatesModel
	}
	for _, s := range scenarios {
		if s.full && !full {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			began := time.Now()
			r := search(t, s.world(), limit)
			t.Logf("%d states, %d transitions, depth %d, complete %v, %v", r.states, r.transitions, r.depth, r.complete, time.Since(began).Round(time.Millisecond))
			if !r.complete && !s.full {
				t.Errorf("not searched to its end")
			}
		})
	}
}

// world is the first state.
func (s *scenario) world() *world {
	w := newWorld(&s.tree, bounds{}, s.turns)
	for !s.boot {
		all, fair := w.actions()
		if fair == 0 || all[0].kind >= want {
			break
		}
		w.do(all[0])
	}
	w.bounds = s.bounds
	return w
}
