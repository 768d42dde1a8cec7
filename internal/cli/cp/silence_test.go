// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
)

// TestSwitchSilent: a group that ends since the switch is silent was not ended by the switch.
func TestSwitchSilent(t *testing.T) {
	for want, err := range map[string]error{
		"":                           nil,
		"the switch does not answer": &envelope.Failure{Action: "renew", SwitchSilent: true},
	} {
		var said string
		x := &stream{s: &sender{o: &SendOptions{Say: func(s string) { said = s }}}}
		x.changed.L = &x.mu
		x.heard(t.Context(), endpoint.Event{Kind: endpoint.Ended, Reason: envelope.Expired, Err: err})
		if (said == "") != (want == "") || !strings.Contains(said, want) {
			t.Errorf("%v: %q, want %q", err, said, want)
		}
	}
}

// TestStill: progress says for how long there was none.
func TestStill(t *testing.T) {
	d := newDisplay(io.Discard)
	start := time.Now()
	for _, c := range []struct {
		after time.Duration
		x     Status
		want  string
	}{
		{0, Status{Bytes: 5}, ""},
		{stillAfter - 1, Status{Bytes: 5}, ""},
		{7 * time.Second, Status{Bytes: 5}, ", no progress for 7 s"},
		{7 * time.Second, Status{Bytes: 5, Whole: true}, ""},
		{7 * time.Second, Status{Bytes: 5, Error: "x"}, ""},
		{8 * time.Second, Status{Bytes: 6}, ""},
		{12 * time.Second, Status{Bytes: 6}, ""},
		{13 * time.Second, Status{Bytes: 6}, ", no progress for 5 s"},
	} {
		if got := d.still(&c.x, start.Add(c.after)); got != c.want {
			t.Errorf("after %v: %q, want %q", c.after, got, c.want)
		}
	}
}
