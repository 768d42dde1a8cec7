// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/rocev2"
)

// An eviction lets the group's ACK go on at once, and is in the file a moment later. After a kill -9
// in between the member is one again. It is evicted again, whether it is silent, without a dead_after too, or answers
// and lacks what the source will not send again. It is never taken for one that has it.
func TestEvictedBeforeKill(t *testing.T) {
	t.Run("it is silent", func(t *testing.T) { evictedBeforeKill(t, false) })
	t.Run("it answers", func(t *testing.T) { evictedBeforeKill(t, true) })
}

func evictedBeforeKill(t *testing.T, answers bool) {
	const config = "psn_probe: 1ms\nlimits: {source_timeout: 500ms}\nenvelope: {insecure: true}\nstate: "
	dir, killed := t.TempDir(), t.TempDir()
	f := newFakeSwitchWith(t, 4, 1, config+dir+"\n")
	f.register(0, 4, 0x100, api.PolicyEvict)
	acked := func(psn api.PSN) func() bool {
		return func() bool {
			g, err := f.Group(fakeGroup(0))
			return err == nil && g.Source == fakeHost(0) && g.AckPSN == psn
		}
	}
	// said has the receivers say that they have everything before one of the source's PSNs: to probes, or of data.
	said := func(next, receivers int) {
		for i := 1; i <= receivers; i++ {
			f.feed(0, answer(i, rocev2.PSN(1000*i+next-1), rocev2.SyndromeACK))
		}
	}
	next := func() int { // of the source
		g, err := f.Group(fakeGroup(0))
		if err != nil || g.State == "failed" {
			t.Fatalf("%v, %+v", err, g)
		}
		return int(g.NextPSN)
	}
	f.eventually("the first message is served", func() bool {
		said(0, 3)
		f.feed(0, send(0, 0))
		return next() == 1
	})
	said(1, 3)
	f.eventually("the first message is complete", acked(0))
	f.eventually("all is in the file", func() bool { return !f.waits() })
	if err := copyFile(dir, killed); err != nil { // kill -9 comes before the next write
		t.Fatal(err)
	}
	f.feed(0, send(0, 1), answer(1, 1001, rocev2.SyndromeACK), answer(2, 2001, rocev2.SyndromeACK), answer(3, 3001, rocev2.SyndromeNAKOpErr))
	f.eventually("the message is complete without the member", acked(1))
	if n := len(f.members(0)); n != 3 {
		t.Fatalf("%d members", n)
	}
	f.end()

	f = newFakeSwitchWith(t, 4, 1, config+killed+"\n")
	f.eventually("the group goes on", func() bool { return len(f.members(0)) == 4 })
	f.eventually("the member is evicted, and the next message complete", func() bool {
		f.feed(0, send(0, 2), answer(0, 0xFFFFFF, rocev2.SyndromeACK))
		if next() == 3 {
			said(3, 2)
		} else {
			said(2, 2)
		}
		if answers {
			f.feed(0, answer(3, 3000, rocev2.SyndromeACK)) // it has PSN 0
		}
		g, err := f.Group(fakeGroup(0))
		if err != nil {
			t.Fatal(err)
		}
		if g.AckPSN == 2 && len(g.Members) == 4 {
			t.Fatal("PSN 2 is acknowledged to the source, and a member has PSN 0 alone")
		}
		return g.AckPSN == 2 && len(g.Members) == 3
	})
	if es := f.events(0, api.EventEvicted); len(es) != 1 || es[0].Member != fakeHost(3) {
		t.Errorf("evictions: %+v", es)
	}
	f.end()
}
