// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
	"pgregory.net/rapid"
)

// lossRun is a network of one source and 16 receivers. Half of the receivers lose the
// fraction loss/10000 of the packets, in both directions.
func lossRun(seed uint64, loss int, messages, packets int) *network {
	n := &network{passed: map[rocev2.PSN]severity{}, silenced: -1, rng: random(seed), timer: 16 * repairTimeout}
	n.links = func(link int) int {
		if host := link / 2; host > 0 && host%2 == 0 {
			return loss
		}
		return 0
	}
	n.repair = &repairing{RepairSpec{Bytes: 1 << 20, Timeout: repairTimeout, Tries: DefaultRepairTries}, minFrameBytes, 1 << 20}
	n.build(17, 1, 0)
	n.portRoom, n.full = []int{0}, 0
	s := n.hosts[0]
	s.ops, s.maxUnacked = nil, 64
	for range messages {
		s.ops = append(s.ops, message(packets)...)
	}
	for _, h := range n.hosts {
		h.rnrLeft = 0
	}
	return n
}

// repairTimeout is a 16th of the requester's timeout, the ratio of the defaults.
const repairTimeout = 250 * time.Microsecond

// TestLossIsNobodyElsesAffair: with room in the store the source sends nothing twice, and
// receivers without loss get nothing twice. A receiver with loss sends at most one NAK for
// each packet that was lost to it or from it.
func TestLossIsNobodyElsesAffair(t *testing.T) {
	for _, loss := range []int{10, 100} {
		for _, packets := range []int{1, 8} {
			for seed := range uint64(2) {
				t.Run(fmt.Sprintf("loss=%de-4/packets=%d/seed=%d", loss, packets, seed), func(t *testing.T) {
					n := lossRun(seed, loss, 1200/packets, packets)
					n.tb = t
					sent := make([]int, len(n.hosts))
					n.trace = func(v ...any) {
						if v[0] == "copy" {
							sent[v[1].(int)]++
						}
					}
					n.run()
					s := n.hosts[0]
					if s.transmitted != len(s.ops) {
						t.Errorf("the source sent %d packets for %d", s.transmitted, len(s.ops))
					}
					again, naks := 0, 0
					for i, h := range n.hosts[1:] {
						if n.links(h.down()) == 0 {
							if h.received != len(s.ops) || h.nakCount > 0 {
								t.Errorf("host %d, which loses nothing, got %d packets for %d and sent %d NAKs", h.id, h.received, len(s.ops), h.nakCount)
							}
						} else if gone, mute := n.lost[h.down()], n.lost[h.up()]; h.nakCount > gone+mute {
							t.Errorf("host %d lost %d packets and %d that it sent, and asked %d times", h.id, gone, mute, h.nakCount)
						}
						again += sent[i+1] - len(s.ops)
						naks += h.nakCount
					}
					if naks == 0 || again == 0 {
						t.Errorf("nothing was repaired: %d NAKs, %d packets again", naks, again)
					}
					t.Logf("%d NAKs, %d of %d packets again, %v", naks, again, 16*len(s.ops), n.now)
				})
			}
		}
	}
}

// TestPropertyAFullStoreChangesNothing: if no frame is retained, because other groups have
// used up the memory, sources and receivers get the same packets at the same times as
// without local repair.
func TestPropertyAFullStoreChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		loss := rapid.SampledFrom([]int{0, 3, 30, 100, 150}).Draw(t, "loss")
		members := rapid.IntRange(3, 9).Draw(t, "members")
		sources := rapid.IntRange(1, 2).Draw(t, "sources")
		children := rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "children")
		churn := children == 0 && rapid.Bool().Draw(t, "churn")
		run := func(r *repairing) (uint64, []string) {
			n := &network{tb: t, passed: map[rocev2.PSN]severity{}, silenced: -1, rng: random(seed), loss: loss, repair: r}
			sum := fnv.New64a()
			var tail []string
			n.trace = func(v ...any) {
				s := fmt.Sprintln(append([]any{n.now}, v...)...)
				sum.Write([]byte(s))
				tail = append(tail, s)
			}
			n.build(members, sources, children)
			n.portRoom, n.full = []int{0}, 0
			if churn {
				n.churn(n.rng(4), n.rng(4), 5*time.Millisecond)
			}
			for i, h := range n.hosts[:sources-1] {
				h.then = n.hosts[i+1].start
			}
			n.after(0, n.hosts[0].start)
			n.finish()
			return sum.Sum64(), tail
		}
		want, plain := run(&repairing{unit: minFrameBytes})
		got, full := run(&repairing{RepairSpec{Bytes: 1 << 20, Timeout: 2 * rtt, Tries: 4}, minFrameBytes, minFrameBytes - 1})
		if got == want && len(plain) == len(full) {
			return
		}
		for i := range plain {
			if i >= len(full) || plain[i] != full[i] {
				t.Fatalf("packet %d: without %q, with a full store %q", i, plain[i], full[min(i, len(full)-1)])
			}
		}
		t.Fatalf("%d packets without, %d with a full store", len(plain), len(full))
	})
}

// TestAPauseCostsAQuestion: some receivers lose nothing, but pause for 5 to 50 ms now and
// then, like a process that is not scheduled, or take long for each packet. They get
// probes for the overdue ACK, and no whole send window again. The source sends nothing
// twice.
func TestAPauseCostsAQuestion(t *testing.T) {
	for _, c := range []struct {
		name    string
		packets int // packets of a message
		slow    time.Duration
		rare    int // number of packets per pause; 0: no pauses
	}{
		{"pauses, each packet asks", 1, 0, 200},
		{"pauses, the last of eight asks", 8, 0, 200},
		{"pauses and slow, each packet asks", 1, 200 * time.Microsecond, 200},
		{"slow, each packet asks", 1, 200 * time.Microsecond, 0},
		{"slow, the last of eight asks", 8, 200 * time.Microsecond, 0},
	} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("%s/seed=%d", c.name, seed), func(t *testing.T) {
				n := lossRun(seed, 0, 800/c.packets, c.packets)
				n.tb, n.timer, n.repair.spec.Timeout = t, 67*time.Millisecond, DefaultRepairTimeout
				n.nodes[0].put()
				pauses := 0
				for _, h := range n.hosts[1:9] {
					h.pause = func() time.Duration {
						if c.rare == 0 || n.rng(c.rare) > 0 {
							return c.slow
						}
						pauses++
						return 5*time.Millisecond + time.Duration(n.rng(int(45*time.Millisecond)))
					}
				}
				sent := 0
				n.trace = func(v ...any) {
					if v[0] == "copy" {
						sent++
					}
				}
				n.run()
				s := n.hosts[0]
				if s.transmitted != len(s.ops) {
					t.Errorf("the source sent %d packets for %d", s.transmitted, len(s.ops))
				}
				again := sent - 16*len(s.ops)
				t.Logf("%d pauses, %d packets again, %v", pauses, again, n.now)
				if again > 5*pauses { // a second probe has four packets, and a third one 16
					t.Errorf("%d packets again for %d pauses", again, pauses)
				}
			})
		}
	}
}
