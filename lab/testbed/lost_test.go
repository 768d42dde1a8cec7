// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/test/labtest"
)

const (
	lostMessages = 64
	lostSize     = 16 << 10
	// lostAt is the number of messages after which a gleamd is killed.
	lostAt = lostMessages / 4
	// lostWithin is the hold time of hellos, the grace of a lost neighbour, and a second for what
	// is sent then.
	lostWithin = time.Second + 3*time.Second + time.Second
)

// sendAndKill is sendAndFail of a switch's gleamd, which is killed, and not started again.
func sendAndKill(t *testing.T, f *Fabric, name string, groups []*endpoint.Group, memories []endpoint.MR) (done int, waited time.Duration, err error) {
	t.Helper()
	return sendAndFail(t, func() error { return f.Gleamds[name].Kill() }, groups, memories)
}

// sendAndFail sends messages from the first member, and has something fail after some of them.
// It returns the number of those that are complete, and how long the source waited for the
// completion, or the error, after the failure.
func sendAndFail(t *testing.T, fail func() error, groups []*endpoint.Group, memories []endpoint.MR) (done int, waited time.Duration, err error) {
	t.Helper()
	source := memories[0]
	for i := range source.Bytes() {
		source.Bytes()[i] = byte(i * 11 >> 4)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	var last time.Time // the time of the last completion, from the failure on
	wait := func() {
		if now := time.Now(); !last.IsZero() {
			waited, last = max(waited, now.Sub(last)), now
		}
	}
	err = Writes(source, lostSize).SendToGroup(ctx, groups[0], source, 8, func(int) {
		wait()
		if done++; done == lostAt {
			if err := fail(); err != nil {
				t.Fatal(err)
			}
			last = time.Now()
		}
	})
	if ctx.Err() != nil {
		t.Fatalf("after %d messages: %v", done, err)
	}
	wait()
	return done, waited, err
}

// complete checks that all members have the messages that are complete.
func complete(t *testing.T, done int, memories []endpoint.MR) {
	t.Helper()
	n := done * lostSize
	for i, m := range memories {
		if !bytes.Equal(m.Bytes()[:n], memories[0].Bytes()[:n]) {
			t.Errorf("member %d does not have the %d messages that are complete", i+1, done)
		}
	}
}

// TestSwitchIsLost: the gleamd of the only switch between two leaves is killed, and does not come
// back, while its links stay up. The source has an error, and all members the reason, when the
// neighbours have waited for it.
func TestSwitchIsLost(t *testing.T) {
	labtest.Require(t)
	f := leafSpine(t, 2, 1, 2)
	groups, memories := join(t, f, len(f.Hosts), fabric.GroupsIPv4.Addr().Next(), lostMessages*lostSize)
	machine := labtest.Watch()
	done, waited, err := sendAndKill(t, f, "s1", groups, memories)
	if err == nil {
		t.Fatal("all messages are complete, without a way to half of the receivers")
	}
	t.Logf("after %d messages and %v: %v", done, waited, err)
	complete(t, done, memories)
	for i, g := range groups {
		lostSwitch(t, f.Hosts[i].Name, g)
		_ = g.Close()
	}
	if waited > lostWithin {
		machine.Timing(t, "the source had its error after %v, want at most %v", waited, lostWithin)
	}
}

// lostSwitch waits for the event that a switch was lost, and which one.
func lostSwitch(t *testing.T, name string, g *endpoint.Group) {
	t.Helper()
	for end := time.After(lostWithin); ; {
		select {
		case e, ok := <-g.Events():
			var lost *envelope.LostLink
			switch {
			case !ok:
				t.Errorf("%s was not told that a switch was lost", name)
			case e.Kind != endpoint.Failed:
				continue
			case e.Reason != envelope.SwitchLost || !errors.As(e.Err, &lost) || lost.To != 1 || lost.Port != "s1":
				t.Errorf("%s: %v, %v, %v", name, e.Kind, e.Reason, e.Err)
			}
			return
		case <-end:
			t.Errorf("%s was told nothing", name)
			return
		}
	}
}

// TestRootIsLost: the gleamd of the switch that a group was registered at is killed, and does not
// come back. The source, at another switch, has an error; the members at the other switches are
// told which switch was lost, and register a group there without it.
func TestRootIsLost(t *testing.T) {
	labtest.Require(t)
	f := leafSpine(t, 3, 2, 2)
	group := fabric.GroupsIPv4.Addr().Next()
	groups, memories := join(t, f, len(f.Hosts), group, lostMessages*lostSize)
	machine := labtest.Watch()
	rotate := func(n int) { // member n is the first
		groups = append(groups[n:len(groups):len(groups)], groups[:n]...)
		memories = append(memories[n:len(memories):len(memories)], memories[:n]...)
	}
	rotate(2)
	done, waited, err := sendAndKill(t, f, "l1", groups, memories)
	if err == nil {
		t.Fatal("all messages are complete, without a way to some of the receivers")
	}
	t.Logf("after %d messages and %v: %v", done, waited, err)
	complete(t, done, memories)
	for i, g := range groups[:4] { // those at l2 and l3
		for end := time.After(lostWithin); ; {
			select {
			case e := <-g.Events():
				t.Logf("member %d: %v %v %v", i, e.Kind, e.Reason, e.Err)
				if e.Kind != endpoint.Failed {
					continue
				}
			case <-end:
				t.Errorf("member %d was told nothing", i)
			}
			break
		}
	}
	for _, g := range groups {
		_ = g.Close()
	}
	if waited > lostWithin {
		machine.Timing(t, "the source had its error after %v, want at most %v", waited, lostWithin)
	}
	f.Hosts = f.Hosts[2:]
	again, memories := join(t, f, len(f.Hosts), group.Next(), lostMessages*lostSize)
	done, _, err = sendAndFail(t, func() error { return nil }, again, memories)
	if err != nil || done != lostMessages {
		t.Fatalf("a group of the other switches: %d messages, %v", done, err)
	}
	complete(t, done, memories)
}
