// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
)

var otherKey = envelope.Auth{Keys: envelope.Keys{1: []byte(strings.Repeat("x", envelope.MinKeyLen))}, Send: 1}

// The error of a caller whose time ends before the machines' deadline names what they
// were waiting for, and the end of the caller's time.
func TestDeadlineSaysWhatWasMissing(t *testing.T) {
	otherID := envelope.Auth{Keys: envelope.Keys{9: auth.Keys[1]}, Send: 9}
	later := envelope.Verdict{Kind: envelope.VerdictLater, Problem: envelope.Problem{Reason: envelope.UnknownMemberLocation}}
	for name, c := range map[string]struct {
		change         func(*world)
		verdict        envelope.Verdict
		key            envelope.Auth // the key of the switch
		master, member string
	}{
		"wrong key at the switch": {verdict: accepted, key: otherKey, master: "no authentic answer from the switch in "},
		"wrong key id":            {verdict: accepted, key: otherID, master: "that it does not accept our key; check key id and key"},
		"no switch":               {change: func(w *world) { w.registrar.Close() }, verdict: accepted, key: auth, master: "no answer from the switch in "},
		"no decision":             {verdict: later, key: auth, master: "the switch is there, but has neither accepted nor rejected it in "},
		"wrong key at a member": {change: func(w *world) { w.auths = map[int]*envelope.Auth{1: &otherKey} }, verdict: accepted, key: auth,
			master: "refused: 10.77.0.2:", member: "has another key than this host under id 1"},
		"wrong key of the switch at a member": {change: func(w *world) {
			common := []byte(strings.Repeat("c", envelope.MinKeyLen))
			w.auths = map[int]*envelope.Auth{
				0: {Keys: envelope.Keys{1: auth.Keys[1], 2: common}, Send: 1}, 1: {Keys: envelope.Keys{1: otherKey.Keys[1], 2: common}, Send: 2},
			}
		}, verdict: accepted, key: auth, master: "1 members have not confirmed in ", member: "messages were dropped because they are not authentic"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2, false, c.verdict, c.key)
			w.deadline = 20 * time.Second
			if c.change != nil {
				c.change(w)
			}
			over := errors.New("the caller's time is over")
			// A busy machine may have come less far when the time is over: it gets more of it once.
			for _, limit := range []time.Duration{1900 * time.Millisecond, 8 * time.Second} {
				ctx, cancel := context.WithTimeoutCause(w.ctx, limit, over)
				_, errs := w.join(t, ctx, endpoint.MasterConfig{})
				cancel()
				if errs[0] == nil || !errors.Is(errs[0], over) || errs[1] == nil {
					t.Fatalf("after %v: master %v, member %v, want both to fail, the master with %q", limit, errs[0], errs[1], over)
				}
				if strings.Contains(errs[0].Error(), c.master) && strings.Contains(errs[1].Error(), c.member) {
					return
				}
				t.Logf("after %v: master %v, want %q; member %v, want %q", limit, errs[0], c.master, errs[1], c.member)
			}
			t.Error("the errors do not say what was missing")
		})
	}
}

func TestJoinFails(t *testing.T) {
	for name, c := range map[string]struct {
		verdict envelope.Verdict
		key     envelope.Auth
		change  func(*world, *endpoint.MasterConfig)
		told    bool // the members get the reason
		want    string
	}{
		"rejected":       {rejected, auth, nil, true, "table full"},
		"wrong key":      {accepted, otherKey, nil, true, "authentic"},
		"window too big": {accepted, auth, func(_ *world, m *endpoint.MasterConfig) { m.WindowLen = memSize + 1 }, true, "the smallest memory of a member has 65536"},
		"not a PMTU":     {accepted, auth, func(_ *world, m *endpoint.MasterConfig) { m.PathMTU = 1000 }, false, "path MTU 1000"},
		"nobody answers": {accepted, auth, func(w *world, m *endpoint.MasterConfig) {
			w.group = netip.MustParseAddr("10.77.254.2")
		}, true, "nobody answers ARP for 10.77.254.2: is it in gleamd's group_prefixes, is gleamd running?"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3, false, c.verdict, c.key)
			ctx, cancel := context.WithTimeout(w.ctx, 8*time.Second)
			defer cancel()
			var m endpoint.MasterConfig
			if c.change != nil {
				c.change(w, &m)
			}
			if !c.told { // otherwise they would wait for a master that never listened
				ctx, cancel = context.WithTimeout(ctx, 500*time.Millisecond)
				defer cancel()
			}
			_, errs := w.join(t, ctx, m)
			if errs[0] == nil || !strings.Contains(errs[0].Error(), c.want) {
				t.Errorf("the master's error is %v, want %q", errs[0], c.want)
			}
			for i, err := range errs[1:] {
				if err == nil {
					t.Errorf("member %d joined", i+1)
				} else if c.told && !strings.Contains(err.Error(), c.want) {
					t.Errorf("member %d was not told why: %v", i+1, err)
				}
			}
		})
	}
}
