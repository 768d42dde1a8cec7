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
