// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package hello

import (
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// TestHellosOfOthersCauseFew: a flood of hellos of ever new switches has a switch send ten
// hellos in an interval at most, and hear four of them.
func TestHellosOfOthersCauseFew(t *testing.T) {
	r := newRig(t)
	sent := 0
	for i := range 1000 {
		r.first(speaker(1, i+1))
		sent += len(r.out.Packets)
		r.now += time.Millisecond
		r.l.Advance(r.now, &r.out)
		sent += len(r.out.Packets)
		if len(r.l.peers) > MaxNeighbours {
			t.Fatalf("%d are heard", len(r.l.peers))
		}
	}
	if sent > 110 {
		t.Errorf("%d hellos in a second", sent)
	}
}

// TestNewAddress: what a neighbour says about itself may change, and is no restart.
func TestNewAddress(t *testing.T) {
	r := newRig(t)
	r.prove(a)
	c := r.challenge(a)
	h := Message{
		KeyID: 1, MaxVersion: 1, Interval: DefaultInterval, Speaker: a, Address: address(1), Seq: 1000,
		Neighbour: []Heard{{speaker(9, 1), 1 + a.Incarnation, c}},
	}
	h.Port = 77
	b, err := h.Append(nil, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	r.input(a, b)
	if e := r.out.Events; len(e) != 1 || e[0].State != Up || e[0].Neighbour.Port != 77 {
		t.Errorf("events %v", e)
	}
}

// TestSoon: what a neighbour waits for is sent within a tenth of the interval.
func TestSoon(t *testing.T) {
	var none, wrong uint64 = 0, 12345
	for name, play := range map[string]func(r *rig){
		"a new neighbour":           func(r *rig) { r.first(b) },
		"it hears this switch":      func(r *rig) { r.input(a, r.hello(a, &none)) },
		"it has proved itself":      func(r *rig) { r.echo(a) },
		"it has ceased to hear":     func(r *rig) { r.echo(a); r.run(15 * time.Millisecond); r.first(a) },
		"its echo is a former one":  func(r *rig) { r.echo(a); r.run(15 * time.Millisecond); r.input(a, r.hello(a, &wrong)) },
		"its next life is the same": func(r *rig) { r.echo(a); r.run(15 * time.Millisecond); r.first(aNext) },
	} {
		r := newRig(t)
		r.first(a)
		r.run(15 * time.Millisecond) // the one that this has caused is sent; the next is due in 60
		play(r)
		if at, ok := r.l.NextDeadline(); !ok || at > r.now+DefaultInterval/10 {
			t.Errorf("%s: the next hello is due in %v", name, at-r.now)
		}
	}
}

// TestRoom: of four that are heard and not proved, the one that expires first makes room for
// a fifth. One that is proved does not, and four that are leave no room.
func TestRoom(t *testing.T) {
	r := newRig(t)
	for i := range MaxNeighbours {
		r.first(speaker(i+1, 1))
		r.run(time.Millisecond)
	}
	r.first(speaker(1, 1)) // newer: now the second expires first
	r.first(speaker(5, 1))
	r.first(speaker(6, 1))
	var got []SwitchID
	for _, p := range r.l.peers {
		got = append(got, p.ID)
	}
	if !slices.Equal(got, []SwitchID{1, 4, 5, 6}) {
		t.Errorf("heard: %v", got)
	}
	for _, p := range r.l.peers {
		r.echo(p.Speaker)
	}
	if r.first(speaker(7, 1)); r.out.Drop != TooMany {
		t.Errorf("a fifth beside four that are proved: %v", r.out.Drop)
	}
}

// TestBadConfigurations are refused.
func TestBadConfigurations(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no ID":          func(c *Config) { c.ID = 0 },
		"no incarnation": func(c *Config) { c.Incarnation = 0 },
		"no version":     func(c *Config) { c.MaxVersion = 0 },
		"no MAC":         func(c *Config) { c.MAC = rocev2.MAC{} },
		"a group's MAC":  func(c *Config) { c.MAC[0] |= 1 },
		"too fast":       func(c *Config) { c.Interval = MinInterval - 1 },
		"too slow":       func(c *Config) { c.Interval = MaxInterval + 1 },
		"no key":         func(c *Config) { c.Keys = nil },
	} {
		c := config(1, 1)
		if change(&c); func() error { _, err := NewLink(0, c); return err }() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
