// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/envelope"
)

// TestEventsKeepTheNewest has no reader of events.
func TestEventsKeepTheNewest(t *testing.T) {
	g := newGroup()
	for i := range 3 * eventSlots {
		g.masterEvent(envelope.Event{Kind: envelope.MemberGone, EndReason: envelope.Left, Done: i})
	}
	g.masterEvent(envelope.Event{Kind: envelope.GroupGone, EndReason: envelope.Failed})
	select {
	case <-g.Over():
	default:
		t.Error("the group is not over")
	}
	var last Event
	n := 0
	for ; len(g.events) > 0; n++ {
		last = <-g.Events()
	}
	if n != eventSlots || last.Kind != Failed {
		t.Errorf("%d events, the last is %v", n, last.Kind)
	}
}

func TestWhyBecomesKind(t *testing.T) {
	for why, want := range map[envelope.EndReason]EventKind{
		envelope.Deleted: Ended, envelope.Expired: Ended, envelope.Replaced: Ended, envelope.Left: Ended,
		envelope.Removed: Ended, envelope.Evicted: Evicted, envelope.Failed: Failed, envelope.SwitchLost: Failed,
		envelope.Withdrawn: Ended, envelope.Forgotten: Ended,
	} {
		g := newGroup()
		g.memberEvent(envelope.Event{Kind: envelope.GroupGone, EndReason: why})
		if e := <-g.Events(); e.Kind != want || e.Reason != why {
			t.Errorf("%v: %+v", why, e)
		}
	}
}

func TestEveryStatusHasWords(t *testing.T) {
	for s, text := range statusText {
		if strings.HasPrefix(s.String(), "status ") || s != Success && s != GeneralErr && text[1] == "" {
			t.Errorf("status %d: %q", uint8(s), text)
		}
	}
	if (Completion{}).Err() != nil {
		t.Error("success is an error")
	}
	if got := Status(200).String(); got != "status 200" {
		t.Errorf("an unknown status is %q", got)
	}
}
