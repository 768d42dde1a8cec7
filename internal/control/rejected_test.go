// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
)

// Registrations that are turned down are one line for each reason and interval, whatever
// group they are for, with the number of those that are not told: in the log, in the audit
// trail and in the journal, so that a holder of a key who causes them without end fills none
// of them. The counters have all.
func TestRejectionsAreSampled(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	var lines []string
	told, audited := uint64(0), 0
	f.control.do(func() {
		f.control.notify = func(warn bool, msg string, kv ...any) {
			if warn && msg == "group rejected" {
				lines = append(lines, fmt.Sprint(kv...))
				told += 1 + kv[5].(uint64)
			}
			if msg == AuditMark {
				audited++
			}
		}
		reject := func(err error) {
			f.control.report(&envelope.Event{Kind: envelope.RegistrationFailed, Group: fakeGroup(0), Err: err, By: envelope.Actor{Key: 1, Addr: netip.MustParseAddrPort("10.0.0.1:4797")}})
		}
		for range 100 {
			reject(&envelope.Problem{Reason: envelope.TooManyMembers, Value: 7})
		}
		reject(fmt.Errorf("register: %w", &envelope.Problem{Reason: envelope.UnknownMemberLocation}))
		for range 5 {
			reject(errors.New("something else"))
		}
		if at, ok := f.control.refused.rejected.next(); !ok || at <= f.control.now() {
			t.Errorf("what is held is told at %v, %v", at, ok)
		}
		f.control.refused.rejected.due(f.control.now()+refusalInterval, f.control.logRejection)
	})
	text := strings.Join(lines, "\n")
	for _, s := range []string{"too many members", "unknown member location", "something else"} {
		if !strings.Contains(text, s) {
			t.Errorf("nothing says %q", s)
		}
	}
	if len(lines) != 5 || told != 106 {
		t.Errorf("%d lines about %d rejections, want 5 about 106:\n%s", len(lines), told, text)
	}
	es := f.events(0, api.EventRejected)
	if len(es) != 5 || audited != 5 {
		t.Errorf("%d rejections in the journal and %d in the audit trail, want 5", len(es), audited)
	}
	if n := f.control.count.rejected[envelope.TooManyMembers]; n != 100 {
		t.Errorf("%d rejections are counted, want 100", n)
	}
	others := 0
	for i := range es {
		if strings.Contains(es[i].Reason, "and 98 others") {
			others++
		}
		if es[i].By != "key 1, 10.0.0.1:4797" {
			t.Errorf("the journal has a rejection by %q", es[i].By)
		}
	}
	if others != 1 {
		t.Errorf("no event has the number of those that are not told: %+v", es)
	}
}

// Registrations that are identical to the live group are two lines in an interval, one of them in the
// audit trail, with the number of the others: a holder of a key may send them without end. The
// operator's are told beside them.
func TestUnchangedRegistrationsAreSampled(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	lines, audited, suppressed := 0, 0, uint64(0)
	f.control.do(func() {
		f.control.notify = func(_ bool, msg string, kv ...any) {
			switch {
			case msg == AuditMark:
				audited++
			case strings.HasPrefix(msg, "group registered again"):
				lines++
				suppressed += kv[len(kv)-1].(uint64)
			}
		}
		for i := range 100 {
			f.control.report(&envelope.Event{Kind: envelope.Unchanged, Group: fakeGroup(i % 7), By: envelope.Actor{Key: 1, Addr: netip.MustParseAddrPort("10.0.0.1:4797")}})
		}
		if at, ok := f.control.refused.unchanged.next(); !ok || at <= f.control.now() {
			t.Errorf("what is held is told at %v, %v", at, ok)
		}
		f.control.report(&envelope.Event{Kind: envelope.Unchanged, Group: fakeGroup(0)}) // by the operator
		f.control.refused.unchanged.due(f.control.now()+refusalInterval, f.control.logUnchanged)
	})
	if lines != 3 || audited != 2 || suppressed != 98 {
		t.Errorf("%d lines, %d in the audit trail, about %d others; want 3, 2 and 98", lines, audited, suppressed)
	}
	if n := f.control.count.unchanged; n != 101 {
		t.Errorf("%d are counted, want 101", n)
	}
}
