// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// feedback decodes what was staged for the source: ACKs and NAKs in their order.
func (b *bench) feedback(t *testing.T) (said []string) {
	t.Helper()
	for _, frame := range b.staged()[0] {
		var f rocev2.Frame
		if r := rocev2.Decode(frame, &f); r != rocev2.OK || !f.VerifyICRC() || f.Op != rocev2.Acknowledge {
			t.Fatalf("feedback does not decode: %v, ICRC right %v", r, f.VerifyICRC())
		}
		s := "ACK "
		if f.AETH().Syndrome().Kind() != rocev2.KindACK {
			s = "NAK "
		}
		said = append(said, s+string(rune('a'+f.BTH().PSN())))
	}
	return said
}

// say has host i acknowledge, or not, psn in the source's numbering.
func (b *bench) say(i int, psn rocev2.PSN, syn rocev2.Syndrome) {
	b.w.servePacket(i, b.take(i, &rocev2.Packet{Op: rocev2.Acknowledge, PSN: psn.Add(int32(1000 * i)), Syndrome: syn}, nil))
}

// both has both receivers acknowledge psn.
func (b *bench) both(psn rocev2.PSN) {
	b.say(1, psn, rocev2.SyndromeACK)
	b.say(2, psn, rocev2.SyndromeACK)
}

// ACKs of one batch leave as one, the last; those of different batches do not, nor
// those before and behind a NAK.
func TestAcksOfABatchAreOne(t *testing.T) {
	b := newBench(t, 3)
	b.repair(t, 0) // so that the source hears of a NAK
	b.send(0, 20)
	for _, c := range []struct {
		acks []rocev2.PSN // the ACKs of both receivers
		want string
	}{
		{[]rocev2.PSN{0}, "ACK a"},
		{[]rocev2.PSN{1, 2, 4}, "ACK e"},
		{[]rocev2.PSN{5}, "ACK f"},
	} {
		for _, psn := range c.acks {
			b.both(psn)
		}
		if got := b.feedback(t); !slices.Equal(got, []string{c.want}) {
			t.Errorf("ACKs of %v in a batch: the source gets %v, want %s", c.acks, got, c.want)
		}
	}
	if n := b.w.count.feedbackOut; n != 3 {
		t.Errorf("%d feedback packets counted, want 3", n)
	}
	b.both(6)
	b.both(7)
	b.say(1, 8, rocev2.SyndromeNAKSequence)
	b.both(8)
	b.both(9)
	if got, want := b.feedback(t), []string{"ACK h", "NAK i", "ACK j"}; !slices.Equal(got, want) {
		t.Errorf("with a NAK between: the source gets %v, want %v", got, want)
	}
}

// R32: the ACK that leaves for a batch carries the congestion signals of all those
// whose place it took, and no later batch's does.
func TestMergedAcksKeepBECN(t *testing.T) {
	b := newBench(t, 3)
	b.send(0, 8)
	ack := func(psn rocev2.PSN, becn bool) {
		for i := 1; i < 3; i++ {
			b.w.servePacket(i, b.take(i, &rocev2.Packet{Op: rocev2.Acknowledge, PSN: psn.Add(int32(1000 * i)), Syndrome: rocev2.SyndromeACK, BECN: becn && i == 1}, nil))
		}
	}
	psn := rocev2.PSN(0)
	for _, marks := range [][]bool{{true, false}, {false, false}, {false, true}, {true, false}} {
		want := false
		for _, m := range marks {
			ack(psn, m)
			psn, want = psn.Next(), want || m
		}
		frames := b.staged()[0]
		var f rocev2.Frame
		if len(frames) != 1 || rocev2.Decode(frames[0], &f) != rocev2.OK || !f.VerifyICRC() {
			t.Fatalf("%d frames for the source, want one ACK", len(frames))
		}
		if f.BTH().PSN() != psn.Prev() || f.BTH().BECN() != want {
			t.Errorf("ACKs with BECN %v in a batch: the source gets ACK %d with BECN %v, want ACK %d with %v", marks, f.BTH().PSN(), f.BTH().BECN(), psn.Prev(), want)
		}
	}
}

// Feedback carries what docs/RC.md says that it does: the traffic class
// without ECN and the VLAN priority of the packet that caused it, MigReq of the source, and
// constants; a timer's has the traffic class of the source.
func TestWhatFeedbackCarries(t *testing.T) {
	w := bareWorker(t, 1)
	w.batchNumber = 1 // in batch 0 there is nothing to merge with
	source := member{ip: netip.MustParseAddr("10.0.0.9"), qpn: 0x765432}
	w.groups[0] = groupTable{
		ip: netip.MustParseAddr("10.9.0.1"), qpn: 0x4711,
		legs: []leg{{kind: mcast.Connected, port: 0, mac: rocev2.MAC{2, 7}, ip: rocev2.KeyOf(source.ip), qpn: source.qpn, vlan: 100}},
	}
	causeOf := func(src netip.Addr, mig bool) *rocev2.Frame {
		var f rocev2.Frame
		b := make([]byte, 512)
		path := rocev2.Path{
			Src: src, Dst: w.groups[0].ip, SrcPort: 0xD00D, TOS: 0xB9 | 2, TTL: 7, ID: 77, Tagged: true, TCI: 0xB000 | 3,
		}
		n := rocev2.BuildPacket(b, &path, &rocev2.Packet{Op: rocev2.SendOnly, DestQP: 0x4711, PSN: 5, AckReq: true, SE: true, MigReq: mig, PKey: 0x8123}, nil)
		if r := rocev2.Decode(b[:n], &f); r != rocev2.OK {
			t.Fatal(r)
		}
		return &f
	}
	cause, receiver := func() *rocev2.Frame { return causeOf(source.ip, true) }, netip.MustParseAddr("10.0.0.8")
	for _, c := range []struct {
		name  string
		fb    mcast.Feedback
		marks sourceMarks
		cause *rocev2.Frame
		tos   uint8
		tci   uint16
		mig   bool
		becn  bool
	}{
		{"ACK", mcast.Feedback{Op: rocev2.Acknowledge, PSN: 5, Syndrome: rocev2.SyndromeACK, MSN: 9}, sourceMarks{}, cause(), 0xB8, 0xB000 | 100, true, false},
		{"ACK of a member with MigReq", mcast.Feedback{Op: rocev2.Acknowledge, PSN: 5, Syndrome: rocev2.SyndromeACK, MSN: 9}, sourceMarks{migReq: false, tos: 0x68}, causeOf(receiver, true), 0xB8, 0xB000 | 100, false, false},
		{"ACK of a member without MigReq", mcast.Feedback{Op: rocev2.Acknowledge, PSN: 5, Syndrome: rocev2.SyndromeACK, MSN: 9}, sourceMarks{migReq: true}, causeOf(receiver, false), 0xB8, 0xB000 | 100, true, false},
		{"NAK of a timer", mcast.Feedback{Op: rocev2.Acknowledge, PSN: 5, Syndrome: rocev2.SyndromeNAKOpErr, MSN: 9}, sourceMarks{true, 0x6A}, nil, 0x68, 100, true, false},
		{"CNP", mcast.Feedback{Op: rocev2.CNP}, sourceMarks{}, cause(), 0xB8, 0xB000 | 100, true, true},
	} {
		w.batchNumber++
		w.ports[0].staged, w.groups[0].source = w.ports[0].staged[:0], c.marks
		w.stageFeedback(&c.fb, c.cause)
		if len(w.ports[0].staged) != 1 {
			t.Fatalf("%s: %d packets", c.name, len(w.ports[0].staged))
		}
		d := w.ports[0].staged[0]
		var f rocev2.Frame
		if r := rocev2.Decode(w.umem.Data(d.Addr, d.Len), &f); r != rocev2.OK || !f.VerifyICRC() {
			t.Fatalf("%s: %v", c.name, r)
		}
		_, tci := f.VLAN()
		ip, udp, bth := f.IPv4(), f.UDP(), f.BTH()
		got := fmt.Sprintf("%v>%v tci %x tos %x ttl %d id %d sport %x sum %x se %v mig %v pkey %x becn %v qp %x ar %v",
			f.Src(), f.Dst(), tci, ip.TOS(), ip.TTL(), ip.ID(), udp.SrcPort(), udp.Checksum(), bth.SE(), bth.MigReq(), bth.PKey(), bth.BECN(), uint32(bth.DestQP()), bth.AckReq())
		want := fmt.Sprintf("10.9.0.1>10.0.0.9 tci %x tos %x ttl 64 id 0 sport %x sum 0 se false mig %v pkey ffff becn %v qp 765432 ar false",
			c.tci, c.tos, 0xC000|0x765432&0x3FFF, c.mig, c.becn)
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, want)
		}
		if c.fb.Op == rocev2.Acknowledge && (f.AETH().Syndrome() != c.fb.Syndrome || f.AETH().MSN() != c.fb.MSN) {
			t.Errorf("%s: syndrome 0x%x, MSN %d", c.name, uint8(f.AETH().Syndrome()), f.AETH().MSN())
		}
	}
}
