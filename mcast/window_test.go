// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"math/big"
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
)

// TestR28_LengthFits: FIRST and MIDDLE are full, LAST has something, and nothing exceeds
// the path MTU.
func TestR28_LengthFits(t *testing.T) {
	const pmtu = 256
	for payload := range uint16(pmtu + 3) {
		for op, want := range map[rocev2.Opcode]bool{
			rocev2.SendFirst: payload == pmtu, rocev2.SendMiddle: payload == pmtu, rocev2.WriteFirst: payload == pmtu, rocev2.WriteMiddle: payload == pmtu,
			rocev2.SendLast: payload >= 1 && payload <= pmtu, rocev2.WriteLast: payload >= 1 && payload <= pmtu,
			rocev2.SendOnly: payload <= pmtu, rocev2.WriteOnly: payload <= pmtu, rocev2.SendOnlyInv: payload <= pmtu,
		} {
			if got := lengthFits(op.Flags(), payload, pmtu); got != want {
				t.Errorf("opcode %#x with %d bytes: %v", uint8(op), payload, got)
			}
		}
	}
}

// TestR27_InWindow: a WRITE is in the window if all of its bytes are, wherever the window
// lies.
func TestR27_InWindow(t *testing.T) {
	rng := random(9)
	near := func(v uint64) uint64 { return v + uint64(rng(7)) - 3 }
	number := func(v uint64) *big.Int { return new(big.Int).SetUint64(v) }
	for range 20000 {
		g := &group{}
		length := []uint64{1, 4096, 1 << 40}[rng(3)]
		base := []uint64{0, 1 << 20, -length, -length - 5}[rng(4)]
		g.fwd.window = Window{base, length, 7}
		g.fwd.numWithoutWindow = int32(rng(8) / 7)
		p := &Packet{RKey: 7 + uint32(rng(8)/7), DMALen: uint32(near([]uint64{0, 5, 4096, 1 << 31}[rng(4)]))}
		switch rng(3) {
		case 0:
			p.VA = near(base)
		case 1:
			p.VA = near(base + length - uint64(p.DMALen))
		default:
			p.VA = near(base + length)
		}
		first, last := number(p.VA), new(big.Int).Add(number(p.VA), number(uint64(p.DMALen)))
		end := new(big.Int).Add(number(base), number(length))
		inside := first.Cmp(number(base)) >= 0 && last.Cmp(end) <= 0
		writable := p.RKey == 7 && g.fwd.numWithoutWindow == 0
		if got, want := g.inWindow(p, rocev2.WriteOnly.Flags()), p.DMALen == 0 || inside && writable; got != want {
			t.Fatalf("%d bytes at %#x, key %d, window of %d at %#x: %v", p.DMALen, p.VA, p.RKey, length, base, got)
		}
		if got := g.inWindow(p, rocev2.SendOnlyInv.Flags()); got != writable {
			t.Fatalf("invalidation of key %d with %d members without window: %v", p.RKey, g.fwd.numWithoutWindow, got)
		}
	}
}

// TestR67_LengthAgrees: the packets of a WRITE have as many bytes as its first packet
// says. What is not known is left to the receivers.
func TestR67_LengthAgrees(t *testing.T) {
	const pmtu = 256
	rng := random(11)
	for range 20000 {
		g := &group{}
		first, before := rocev2.PSN(0xFFFFFE), rng(5)-1
		psn := first.Add(int32(before))
		nxt := first.Add(int32(rng(6)))
		length := uint32(pmtu*rng(4) + rng(3))
		g.fwd.pmtu, g.fwd.nxt = pmtu, nxt
		g.fwd.writeMessage = writeMessage{known: rng(5) > 0, first: first, length: length}
		p := &Packet{PSN: psn | 0xFF<<24, Payload: uint16(rng(3))}
		if rng(2) == 0 {
			p.Payload += pmtu - 1
		}
		known := g.fwd.writeMessage.known && before > 0 && !nxt.Less(psn)
		left := int(length) - before*pmtu
		if got, want := g.lengthAgrees(p, rocev2.WriteLast.Flags()), !known || left == int(p.Payload); got != want {
			t.Fatalf("LAST of %d bytes, %d packets into %+v, nxt %06x: %v", p.Payload, before, g.fwd.writeMessage, uint32(nxt), got)
		}
		if got, want := g.lengthAgrees(p, rocev2.WriteMiddle.Flags()), !known || left > int(p.Payload); got != want {
			t.Fatalf("MIDDLE of %d bytes, %d packets into %+v, nxt %06x: %v", p.Payload, before, g.fwd.writeMessage, uint32(nxt), got)
		}
		p.DMALen = uint32(p.Payload) + uint32(rng(3)) - 1
		if got := g.lengthAgrees(p, rocev2.WriteOnly.Flags()); got != (p.DMALen == uint32(p.Payload)) {
			t.Fatalf("ONLY of %d bytes says %d: %v", p.Payload, p.DMALen, got)
		}
		if got := g.lengthAgrees(p, rocev2.WriteFirst.Flags()); got != (p.DMALen > uint32(p.Payload)) && p.DMALen < 1<<31 {
			t.Fatalf("FIRST of %d bytes says %d: %v", p.Payload, p.DMALen, got)
		}
	}
}

// TestR67_NewestMessage: the newest message is known if it is a WRITE of several packets
// whose FIRST has passed. A FIRST that passes again corrects its length, and ends a
// refusal that followed from the wrong one.
func TestR67_NewestMessage(t *testing.T) {
	old := writeMessage{true, 10, 500}
	refused := refusal{psn: 12, syndrome: rocev2.SyndromeNAKInvalid, reason: BadLength}
	for name, c := range map[string]struct {
		known   bool
		psn     rocev2.PSN // nxt is 13
		op      rocev2.Opcode
		length  uint32
		want    writeMessage
		refused bool
	}{
		"a new WRITE":             {true, 13, rocev2.WriteFirst, 700, writeMessage{true, 13, 700}, true},
		"one behind a gap":        {true, 15, rocev2.WriteFirst, 700, writeMessage{true, 15, 700}, true},
		"a WRITE of one packet":   {true, 13, rocev2.WriteOnly, 100, writeMessage{false, 13, 100}, true},
		"a SEND":                  {true, 13, rocev2.SendFirst, 0, writeMessage{false, 13, 0}, true},
		"a MIDDLE behind a gap":   {true, 15, rocev2.WriteMiddle, 0, writeMessage{false, 10, 500}, true},
		"the FIRST again":         {true, 10, rocev2.WriteFirst, 500, old, true},
		"the FIRST corrected":     {true, 10, rocev2.WriteFirst, 600, writeMessage{true, 10, 600}, false},
		"no FIRST after all":      {true, 10, rocev2.SendFirst, 0, writeMessage{false, 10, 0}, false},
		"an earlier FIRST":        {true, 9, rocev2.WriteFirst, 600, old, true},
		"a later FIRST again":     {true, 12, rocev2.WriteFirst, 600, old, true},
		"a FIRST of what is lost": {false, 10, rocev2.WriteFirst, 600, writeMessage{false, 10, 500}, true},
	} {
		g := &group{refusal: refused}
		g.fwd.nxt, g.fwd.writeMessage = 13, old
		g.fwd.writeMessage.known = c.known
		g.noteMessageStart(&Packet{DMALen: c.length}, c.psn, c.op.Flags())
		if g.fwd.writeMessage != c.want || (g.refusal == refused) != c.refused {
			t.Errorf("%s: %+v, refusal %+v", name, g.fwd.writeMessage, g.refusal)
		}
	}
	g := &group{refusal: refusal{psn: 10, syndrome: rocev2.SyndromeNAKInvalid}}
	g.fwd.nxt, g.fwd.writeMessage = 13, old
	if g.noteMessageStart(&Packet{DMALen: 600}, 10, rocev2.WriteFirst.Flags()); g.refusal == (refusal{}) {
		t.Error("the refusal of the FIRST itself has ended")
	}
}

// TestR28_CheckRequest: what the switch itself answers, beside targets and target messages.
func TestR28_CheckRequest(t *testing.T) {
	const access, invalid = rocev2.SyndromeNAKAccess, rocev2.SyndromeNAKInvalid
	for i, c := range []struct {
		window, targets bool
		op              rocev2.Opcode
		rkey, dma       uint32
		payload         uint16
		want            rocev2.Syndrome
		why             Reason
	}{
		{true, false, rocev2.WriteOnly, 7, 8, 8, 0, None},
		{true, false, rocev2.WriteOnly, 0, 8, 8, access, WindowViolation},
		{true, true, rocev2.WriteOnly, 0, 8, 8, access, WindowViolation},
		{false, false, rocev2.WriteOnly, 0, 8, 8, 0, None},
		{true, false, rocev2.WriteOnly, 7, 8, 9, invalid, BadLength},
		{true, false, rocev2.WriteOnly, 7, 300, 300, invalid, BadLength},
		{true, false, rocev2.WriteOnly, 0, 300, 300, invalid, BadLength},
		{true, false, rocev2.SendOnly, 0, 0, 8, 0, None},
		{true, false, rocev2.SendLast, 0, 0, 8, 0, None},
		{true, false, rocev2.WriteLast, 0, 0, 8, invalid, BadLength}, // 300 - 256 are left
		{true, false, rocev2.WriteLast, 0, 0, 44, 0, None},
		{true, false, rocev2.SendOnlyInv, 7, 0, 8, 0, None},
		{true, false, rocev2.SendOnlyInv, 9, 0, 8, access, WindowViolation},
		{false, false, rocev2.SendOnlyInv, 9, 0, 8, 0, None},
		{false, true, rocev2.SendOnlyInv, 9, 0, 8, 0, None},
		{true, false, rocev2.ReadRequest, 7, 8, 0, invalid, NotMulticastable},
	} {
		g := &group{}
		g.fwd.pmtu, g.fwd.nxt, g.fwd.writeMessage = 256, 1, writeMessage{true, 0, 300}
		if c.window {
			g.fwd.window, g.fwd.hasWindow = Window{0, 100, 7}, true
		}
		if c.targets {
			g.fwd.targets, g.fwd.targetKey = newTargets(2), 9
		}
		p := &Packet{Op: c.op, PSN: 1, RKey: c.rkey, DMALen: c.dma, Payload: c.payload}
		if got, why := g.checkRequest(p, c.op.Flags()); got != c.want || why != c.why {
			t.Errorf("case %d: %#x, %v", i, uint8(got), why)
		}
	}
}
