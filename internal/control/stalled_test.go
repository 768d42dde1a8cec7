// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// A source is given up after the configured time, and not before it would have given
// up by itself.
func TestSourceTimeout(t *testing.T) {
	for _, c := range []struct {
		timeout, retries uint8
		want             time.Duration
	}{
		{0, 0, 2 * time.Second},
		{14, 7, 2 * time.Second}, // 0.54 s
		{18, 3, 4 * 4096 << 18 * time.Nanosecond},
	} {
		r := envelope.Registration{GroupParams: mcast.GroupParams{SenderTimeout: c.timeout, SenderRetries: c.retries}}
		d := directory{defaults: groupDefaults{sourceTimeout: 2 * time.Second}}
		if got := d.makeSpec(0, &r, &dataplane.Table{}).SourceTimeout; got != c.want {
			t.Errorf("timeout %d, %d retries: %v, want %v", c.timeout, c.retries, got, c.want)
		}
	}
	if s := failureText(&mcast.Event{Kind: mcast.GroupFailed, Syndrome: rocev2.SyndromeNAKOpErr, Cause: mcast.SourceStalled}); !strings.Contains(s, "the source stalled") {
		t.Errorf("the operator reads %q", s)
	}
}

// R59: the default follows what is measured, to half of what the sender waits; what
// was set does not.
func TestR59_OnlyTheDefaultFollows(t *testing.T) {
	r := &envelope.Registration{Group: netip.MustParseAddr("10.77.254.1"), GroupParams: mcast.GroupParams{DeadAfter: envelope.DefaultDeadAfter}}
	at := func() time.Duration { return new(directory).makeSpec(0, r, &dataplane.Table{}).DeadAfterMax }
	if d := at(); d < 200*time.Millisecond || d > 250*time.Millisecond {
		t.Errorf("undeclared, with the usual sender: %v", d)
	}
	r.SenderTimeout, r.SenderRetries = 18, 7 // 1.07 s
	if d := at(); d < 3*time.Second || d > 4*time.Second {
		t.Errorf("with a sender that gives up after 7.5 s: %v", d)
	}
	r.DeadAfter++
	if d := at(); d != 0 {
		t.Errorf("set: %v", d)
	}
}
