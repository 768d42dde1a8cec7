// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/envelope"
)

// Registrations that are turned down are one line for each reason and interval, whatever
// group they are for, with the number of those that are not told. The journal has all.
func TestRejectionsAreSampled(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	var lines []string
	told := uint64(0)
	f.control.do(func() {
		f.control.notify = func(warn bool, msg string, kv ...any) {
			if warn && msg == "group rejected" {
				lines = append(lines, fmt.Sprint(kv...))
				told += 1 + kv[5].(uint64)
			}
		}
		reject := func(err error) {
			f.control.report(&envelope.Event{Kind: envelope.RegistrationFailed, Group: fakeGroup(0), Err: err})
		}
		for range 100 {
			reject(&envelope.Problem{Reason: envelope.TooManyMembers, Value: 7})
		}
		reject(fmt.Errorf("register: %w", &envelope.Problem{Reason: envelope.UnknownMemberLocation}))
		for range 5 {
			reject(errors.New("something else"))
		}
		if at, ok := f.control.rejected.next(); !ok || at <= f.control.now() {
			t.Errorf("what is held is told at %v, %v", at, ok)
		}
		f.control.rejected.due(f.control.now()+refusalInterval, f.control.logRejection)
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
	if es := f.events(0, api.EventRejected); len(es) != 106 {
		t.Errorf("%d rejections in the journal, want 106", len(es))
	}
}
