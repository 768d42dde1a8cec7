// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

func TestBucket(t *testing.T) {
	pass := func(b *Policer, from, to, step time.Duration) (n int) {
		for now := from; now < to; now += step {
			if b.Allow(now) {
				n++
			}
		}
		return n
	}
	b := NewPolicer(1000)
	if n := pass(&b, 0, 1, 1); n != 1 {
		t.Errorf("the first packet: %d pass", n)
	}
	if n := pass(&b, 0, 10*time.Second, 10*time.Microsecond); n < 10_000 || n > 10_200 {
		t.Errorf("1000 a second for 10 s: %d pass", n)
	}
	slow := NewPolicer(1)
	if n := pass(&slow, 0, time.Second, time.Millisecond); n != 10 {
		t.Errorf("a rate of 1: a burst of %d, want 10", n)
	}
	if n := pass(&Policer{}, 0, time.Second, time.Microsecond); n != 1_000_000 {
		t.Errorf("no limit: %d pass", n)
	}
	quiet := NewPolicer(1000)
	quiet.Allow(0)
	if n := pass(&quiet, time.Hour, time.Hour+1000, 1); n != 100 {
		t.Errorf("after an hour of silence a burst of %d, want 100", n)
	}
}

// A member's packets are believed only from its own port and MAC address: no
// host can acknowledge for another or send into a group as another.
func TestPacketsFromElsewhereAreDropped(t *testing.T) {
	b := newBench(t, 3)
	data := &rocev2.Packet{Op: rocev2.SendOnly, PSN: 0, AckReq: true}
	ack := func(i int) *rocev2.Packet {
		return &rocev2.Packet{Op: rocev2.Acknowledge, PSN: rocev2.PSN(1000 * i), Syndrome: rocev2.SyndromeACK}
	}
	wrong := func(what string) {
		t.Helper()
		if n := b.w.count.drop[dropSourceGuard]; n != 1 || b.unstage() != 0 {
			t.Errorf("%s: %d counted as source_guard; drops %v", what, n, b.w.count.drops())
		}
		b.w.count.drop[dropSourceGuard] = 0
	}
	b.w.servePacket(1, b.take(0, data, nil))
	wrong("data of host 0 by the port of host 1")
	forged := b.take(0, data, nil)
	rocev2.Ethernet(b.w.umem.Data(forged.Addr, 14)).SetSrc(rocev2.MAC(b.hosts[1].MAC))
	b.w.servePacket(0, forged)
	wrong("data of host 0 with the MAC address of host 1")
	b.w.servePacket(0, b.take(0, data, nil))
	if b.unstage() != 2 {
		t.Fatal("data from its own place was not forwarded")
	}
	b.w.servePacket(1, b.take(2, ack(2), nil))
	wrong("an ACK of host 2 by the port of host 1")
	b.w.servePacket(1, b.take(1, ack(1), nil))
	if b.unstage() != 0 {
		t.Fatal("acknowledged although host 2 has not")
	}
	b.w.servePacket(2, b.take(2, ack(2), nil))
	if b.unstage() != 1 {
		t.Fatal("not acknowledged although both hosts have")
	}
}
