// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"slices"
	"testing"

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
	b.w.input(i, b.take(i, &rocev2.Packet{Op: rocev2.Acknowledge, PSN: psn.Add(int32(1000 * i)), Syndrome: syn}, nil))
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
		acks []rocev2.PSN // of both receivers
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
			b.w.input(i, b.take(i, &rocev2.Packet{Op: rocev2.Acknowledge, PSN: psn.Add(int32(1000 * i)), Syndrome: rocev2.SyndromeACK, BECN: becn && i == 1}, nil))
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
