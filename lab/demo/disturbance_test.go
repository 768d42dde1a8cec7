// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// TestChanges: those with a time of their own are at it, the others spread evenly, and all are in order.
func TestChanges(t *testing.T) {
	o, err := parse(t, "--topology leaf-spine --reload --fail-link s1-l1@90% --fail-switch spine2 --restart-switch l4:kill@10")
	if err != nil {
		t.Fatal(err)
	}
	want := []change{
		{kind: restartSwitch, what: "l4", kill: true, part: 0.1}, {kind: reload, part: 0.2}, {kind: failSwitch, what: "s2", part: 0.6},
		{kind: failLink, what: "l1-s1", part: 0.9},
	}
	if !slices.Equal(o.planned, want) {
		t.Errorf("%+v, want %+v", o.planned, want)
	}
}

// TestPauses: a receiver that gets nothing for a time has a pause of that time, and what comes
// before its first packet and after its last one is none.
func TestPauses(t *testing.T) {
	var packets atomic.Uint64
	p := watchPauses([]string{"h2"}, 3, func(int) uint64 { return packets.Load() })
	until := func(what string, holds func() bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !holds(); time.Sleep(sample) {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	packets.Store(1)
	begin := time.Now()
	until("a pause", func() bool { return time.Since(begin) > 30*time.Millisecond })
	packets.Store(2)
	var x pause
	until("it is noted", func() bool { x = p.next(); return x.lasted > 0 })
	if x.receiver != "h2" || x.lasted < 10*time.Millisecond || x.lasted > time.Since(begin)+sample {
		t.Errorf("%+v", x)
	}
	packets.Store(3)
	p.end()
	if p.next().lasted > 10*time.Second {
		t.Error("a pause after the last packet")
	}
}

// TestDisturbances: each change begins at its message, one after the other, and the error of one
// is that of all.
func TestDisturbances(t *testing.T) {
	fails := errors.New("a link that is not there")
	var done []string
	say := labtest.NewOutput("")
	d := &disturbances{
		say: &progress{w: say}, pauses: watchPauses(nil, 1, nil),
		do: func(_ context.Context, c *change) error {
			done = append(done, c.what)
			if c.what == "l1-s1" {
				return fails
			}
			return nil
		},
		routed: func(context.Context) error { return nil },
	}
	newDisturbances(t.Context(), []change{{kind: failSwitch, what: "s1", part: 0.001}, {kind: failLink, what: "l1-s1", part: 0.5}, {kind: reload, part: 0.9}}, 4, d)
	for range 3 {
		d.completed()
	}
	if err := d.end(); !errors.Is(err, fails) {
		t.Error(err)
	}
	if !slices.Equal(done, []string{"s1", "l1-s1", ""}) || len(d.begun()) != 3 {
		t.Errorf("%v, %v", done, d.begun())
	}
	if r := d.results(); r[0].After != 1 || r[1].After != 2 || r[2].After != 3 || r[0].RoutedMS <= 0 || r[2].RoutedMS != 0 {
		t.Errorf("%+v", r)
	}
	var none *disturbances
	none.completed()
	if none.end() != nil || none.begun() != nil || none.results() != nil {
		t.Error("without changes something happens")
	}
}
