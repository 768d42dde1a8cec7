// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// A keepalive probe is a WRITE of no bytes that responders take for a duplicate; the
// message that waits for its answer is asked for when it has come.
func TestKeepaliveProbe(t *testing.T) {
	b := newBench(t, 3)
	b.spec.PSNProbe = time.Millisecond
	b.w.core = newCore(mcast.Limits{}) // nobody comes back
	if err := b.w.putGroup(b.spec, b.w.groups[0]); err != nil {
		t.Fatal(err)
	}
	b.w.fireDeadlines()
	for i, frames := range b.staged() {
		if len(frames) != 1 {
			t.Fatalf("%d frames to host %d, want one probe", len(frames), i)
		}
		var f rocev2.Frame
		if r := rocev2.Decode(frames[0], &f); r != rocev2.OK {
			t.Fatal(r)
		}
		bth := f.BTH()
		if want := rocev2.PSN(1000 * i).Add(-1 << 22); f.Op != rocev2.WriteOnly || f.RETH().DMALen() != 0 || !bth.AckReq() ||
			bth.PSN() != want || bth.DestQP() != rocev2.QPN(0x100+i) || f.Src() != b.group || f.Dst() != b.hosts[i].IPv4 || !f.VerifyICRC() {
			t.Errorf("host %d: %v of %d bytes to QPN %#x, PSN %06x, want %06x, from %s", i, f.Op, f.RETH().DMALen(), uint32(bth.DestQP()), uint32(bth.PSN()), uint32(want), f.Src())
		}
	}
	data := func() { b.w.servePacket(0, b.take(0, &rocev2.Packet{Op: rocev2.SendOnly, AckReq: true}, []byte("x"))) }
	answer := func(i int) {
		b.w.servePacket(i, b.take(i, &rocev2.Packet{Op: rocev2.Acknowledge, PSN: rocev2.PSN(1000*i - 1), Syndrome: rocev2.SyndromeACK}, nil))
	}
	answer(1)
	data()
	if n := b.unstage(); n != 0 || b.w.count.core[mcast.AwaitsVerification] != 1 {
		t.Errorf("%d frames before all have answered, drops %v", n, b.w.count.drops())
	}
	answer(2)
	naks := b.staged()[0]
	var f rocev2.Frame
	if len(naks) != 1 || rocev2.Decode(naks[0], &f) != rocev2.OK || f.Op != rocev2.Acknowledge || f.AETH().Syndrome() != rocev2.SyndromeNAKSequence {
		t.Fatalf("the source is not asked for what waited: %d frames", len(naks))
	}
	data()
	if n := b.unstage(); n != 2 {
		t.Errorf("%d copies when all have answered", n)
	}
}
