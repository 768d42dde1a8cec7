// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// silence posts one message of nobody's interest, and returns when each repetition is sent,
// when the QP gives up, and how.
func silence(t *testing.T, c Config) (repetitions []time.Duration, end time.Duration, status Status) {
	t.Helper()
	q := mustNew(t, c)
	if err := q.PostSend(WR{}); err != nil {
		t.Fatal(err)
	}
	var out Output
	q.Transmit(0, &out, 1)
	for range 1000 {
		at, ok := q.NextDeadline()
		if !ok {
			t.Fatal("no deadline with a packet unacknowledged")
		}
		out.Reset()
		if q.Advance(at, &out); q.State() == Error {
			return repetitions, at, out.Completions[0].Status
		}
		if q.Transmit(at, &out, 1) == 1 {
			repetitions = append(repetitions, at)
		}
	}
	t.Fatal("no end")
	return nil, 0, Success
}

// TestRetransmissionTimes: what was measured at a ConnectX-6 (RC.md §11, P1 to P4): the first
// repetition after 12 to 71 ms, a regular interval that no timeout code below 16 shortens,
// and the time after which the QP gives up; without adaptive retransmission the nominal time.
func TestRetransmissionTimes(t *testing.T) {
	for _, x := range []struct {
		p       Personality
		code    uint8
		retries uint8
		end     time.Duration // the end, within 1 %
		regular time.Duration // the time between the last two repetitions
	}{
		{ConnectX, 14, 7, 3660 * time.Millisecond, 537 * time.Millisecond},
		{ConnectX, 8, 7, 3660 * time.Millisecond, 537 * time.Millisecond},
		{ConnectX, 14, 0, 3660 * time.Millisecond, 537 * time.Millisecond},
		{ConnectX, 14, 1, 440 * time.Millisecond, 0},
		{ConnectX, 20, 7, 60030 * time.Millisecond, 8590 * time.Millisecond},
		{ConnectXRepeat, 14, 7, 3660 * time.Millisecond, 537 * time.Millisecond},
		{ConnectXExact, 14, 7, 537 * time.Millisecond, 67109 * time.Microsecond},
		{ConnectXExact, 8, 7, 8389 * time.Microsecond, 1049 * time.Microsecond},
		{Strict, 14, 7, 537 * time.Millisecond, 67109 * time.Microsecond},
	} {
		c := goodConfig()
		c.Personality, c.Timeout, c.RetryCnt = x.p, rocev2.AckTimeout(x.code), x.retries
		repetitions, end, status := silence(t, c)
		if d := end - x.end; status != RetryExcErr || d < -x.end/100 || d > x.end/100 {
			t.Errorf("%v, timeout %d, retries %d: %v after %v, want %v", x.p, x.code, x.retries, status, end, x.end)
		}
		n := len(repetitions)
		if x.regular > 0 {
			if d := repetitions[n-1] - repetitions[n-2] - x.regular; d < -x.regular/100 || d > x.regular/100 {
				t.Errorf("%v, timeout %d: repetitions %v, want %v between the last two", x.p, x.code, repetitions, x.regular)
			}
		}
		if first := repetitions[0]; x.p.traits().adaptive && (first < 12*time.Millisecond || first > 71*time.Millisecond) {
			t.Errorf("%v: first repetition after %v", x.p, first)
		}
	}
}

// TestEarlyRepetitions: the waits double, differ between QPs, are the same for the same QP,
// and become shorter with progress.
func TestEarlyRepetitions(t *testing.T) {
	firsts := map[time.Duration]bool{}
	for i := range 20 {
		c := goodConfig()
		c.Personality, c.LocalQPN = ConnectX, rocev2.QPN(0x11+i)
		list, _, _ := silence(t, c)
		again, _, _ := silence(t, c)
		if !slices.Equal(list, again) {
			t.Errorf("QPN %#x: %v, then %v", c.LocalQPN, list, again)
		}
		if list[1] != 3*list[0] { // after as long again twice
			t.Errorf("QPN %#x: %v: the second wait is not twice the first", c.LocalQPN, list)
		}
		firsts[list[0]] = true
	}
	if len(firsts) < 19 {
		t.Errorf("20 QPs have %d first waits", len(firsts))
	}
	c := goodConfig()
	c.Personality = ConnectX
	q := mustNew(t, c)
	before := q.requester.retryInterval()
	if err := q.PostSend(WR{Data: make([]byte, 9*c.PMTU)}); err != nil {
		t.Fatal(err)
	}
	var out Output
	q.Transmit(0, &out, 9)
	for i := range 8 {
		q.Input(0, &Packet{Op: rocev2.Acknowledge, DestQP: 0x11, PSN: rocev2.PSN(i), Syndrome: rocev2.SyndromeACK}, &out)
	}
	if at, _ := q.NextDeadline(); at != before/adaptiveShrink {
		t.Errorf("after 8 ACKs the packet is repeated after %v, before %v", at, before)
	}
}

// TestCadence: the packets of a long message that ask for an ACK (P5, P14).
func TestCadence(t *testing.T) {
	for _, x := range []struct {
		p             Personality
		every, window int
	}{
		{RXE, 66, 128}, {ConnectX, 256, 1024}, {ConnectXExact, 256, 1024}, {ConnectXRepeat, 256, 1024},
		{EachPacket, 1, 1024}, {Mthca, 1024, 2048},
	} {
		c := goodConfig()
		c.Personality = x.p
		if got := mustNew(t, c).Config(); got.AckReqEvery != x.every || got.MaxUnacked != x.window {
			t.Errorf("%v: an ACK for %d packets, %d unacknowledged; want %d, %d", x.p, got.AckReqEvery, got.MaxUnacked, x.every, x.window)
		}
		list := asking(t, c, x.window, 0)
		for i, at := range list[:len(list)-1] {
			if at != (i+1)*x.every-1 {
				t.Errorf("%v: packets %v ask", x.p, list)
				break
			}
		}
		if want := (x.window + x.every - 1) / x.every; len(list) != want {
			t.Errorf("%v: %d of %d packets ask, want %d", x.p, len(list), x.window, want)
		}
	}
	c := goodConfig()
	c.Personality = IRDMA
	if got := mustNew(t, c).Config().MaxUnacked; got != 1024 {
		t.Errorf("irdma: %d unacknowledged", got)
	}
}

// receiver makes a QP that expects PSN 0, with a region of 2048 bytes at 0x1000.
func receiver(t *testing.T, p Personality) (*QP, *MR, []byte) {
	t.Helper()
	mem, region := NewMemory(1), make([]byte, 2048)
	mr, err := mem.RegisterMR(region, 0x1000, RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	c := goodConfig()
	c.Personality, c.Memory = p, mem
	return mustNew(t, c), mr, region
}

// TestAckSyndrome: the credit code of an ACK (P14).
func TestAckSyndrome(t *testing.T) {
	for p, want := range map[Personality]rocev2.Syndrome{
		RXE: 0x1F, Strict: 0x1F, IRDMA: 0x1E, Mthca: 0x1F, ConnectX: 2, ConnectXRepeat: 2, ConnectXExact: 2, EachPacket: 2,
	} {
		q, mr, _ := receiver(t, p)
		for range 2 {
			if err := q.PostRecv(RecvWR{}); err != nil {
				t.Fatal(err)
			}
		}
		var out Output
		q.Input(0, &Packet{Op: rocev2.WriteOnly, DestQP: 0x11, AckReq: true, VA: 0x1000, RKey: mr.RKey, DMALen: 1, Payload: []byte{1}}, &out)
		if len(out.Packets) != 1 || out.Packets[0].Syndrome != want {
			t.Errorf("%v: %+v, want syndrome %#x", p, out.Packets, want)
		}
	}
}

// TestPartialWrite: a WRITE over the end of a region has written what fits before it is
// refused, packet by packet, and nothing where bounds are checked first (P8). The QP that
// refuses is in error (P7).
func TestPartialWrite(t *testing.T) {
	for _, p := range Personalities() {
		q, mr, region := receiver(t, p)
		var out Output
		full := bytes.Repeat([]byte{7}, 1024)
		q.Input(0, &Packet{Op: rocev2.WriteFirst, DestQP: 0x11, VA: 0x1000, RKey: mr.RKey, DMALen: 4096, Payload: full}, &out)
		for psn := range rocev2.PSN(2) {
			q.Input(0, &Packet{Op: rocev2.WriteMiddle, DestQP: 0x11, PSN: psn + 1, Payload: full}, &out)
		}
		written, psn := 0, rocev2.PSN(0)
		if p.traits().checksWritesByPart {
			written, psn = 2048, 2
		}
		if n := bytes.Count(region, []byte{7}); n != written {
			t.Errorf("%v: %d bytes written, want %d", p, n, written)
		}
		if len(out.Packets) != 1 || out.Packets[0].Syndrome != rocev2.SyndromeNAKAccess || out.Packets[0].PSN != psn || q.State() != Error {
			t.Errorf("%v: %+v in state %v", p, out.Packets, q.State())
		}
	}
}

// TestCoalescedAcks: the ACK inside a message waits and covers what has come meanwhile; the
// one at its end does not wait, and is the only one then (P6).
func TestCoalescedAcks(t *testing.T) {
	for _, p := range Personalities() {
		q, mr, _ := receiver(t, p)
		var out Output
		data := make([]byte, 1024)
		q.Input(0, &Packet{Op: rocev2.WriteFirst, DestQP: 0x11, AckReq: true, VA: 0x1000, RKey: mr.RKey, DMALen: 2048 - 1, Payload: data}, &out)
		if p.traits().ackDelay == 0 {
			if _, ok := q.NextDeadline(); ok || len(out.Packets) != 1 {
				t.Errorf("%v: %+v, and a deadline: %v", p, out.Packets, ok)
			}
			continue
		}
		if at, ok := q.NextDeadline(); len(out.Packets) != 0 || !ok || at != p.traits().ackDelay {
			t.Errorf("%v: %+v, deadline %v %v", p, out.Packets, at, ok)
		}
		q.Input(1, &Packet{Op: rocev2.WriteLast, DestQP: 0x11, PSN: 1, AckReq: true, Payload: data[1:]}, &out)
		if _, ok := q.NextDeadline(); ok || len(out.Packets) != 1 || out.Packets[0].PSN != 1 {
			t.Errorf("%v: at the end %+v, another to come: %v", p, out.Packets, ok)
		}
		out.Reset()
		q.Input(2, &Packet{Op: rocev2.WriteFirst, DestQP: 0x11, PSN: 2, AckReq: true, VA: 0x1000, RKey: mr.RKey, DMALen: 2048, Payload: data}, &out)
		q.Advance(time.Second, &out)
		q.Advance(time.Second, &out)
		if len(out.Packets) != 1 || out.Packets[0].PSN != 2 || out.Packets[0].Syndrome.Kind() != rocev2.KindACK {
			t.Errorf("%v: after the wait %+v", p, out.Packets)
		}
	}
}

// TestRNRWait: hardware waits longer than it was asked to (P20).
func TestRNRWait(t *testing.T) {
	for p, times := range map[Personality]time.Duration{RXE: 1, Strict: 1, IRDMA: 1, ConnectX: 2, ConnectXExact: 2} {
		c := goodConfig()
		c.Personality = p
		q := mustNew(t, c)
		if err := q.PostSend(WR{}); err != nil {
			t.Fatal(err)
		}
		var out Output
		q.Transmit(0, &out, 1)
		q.Input(0, &Packet{Op: rocev2.Acknowledge, DestQP: 0x11, Syndrome: rocev2.RNRCode(12).RNR()}, &out)
		if at, ok := q.NextDeadline(); !ok || at != times*rocev2.RNRCode(12).Duration() {
			t.Errorf("%v: %v %v", p, at, ok)
		}
	}
}

// TestSelectiveRepeat: a NAK has one packet repeated, and the QP goes on where it was; the
// receiver keeps what came behind the gap, and a second gap is reported at once (P11, P12).
func TestSelectiveRepeat(t *testing.T) {
	for _, p := range Personalities() {
		mem, region := NewMemory(1), make([]byte, 20*256)
		mr, err := mem.RegisterMR(region, 0x1000, RemoteWrite)
		if err != nil {
			t.Fatal(err)
		}
		c := Config{Personality: p, PMTU: 256, LocalQPN: 0x11, DestQPN: 0x12, SQPSN: 0xFFFFFE, RQPSN: 0xFFFFFE, Timeout: time.Second, RetryCnt: 7, Memory: mem}
		a := mustNew(t, c)
		c.LocalQPN, c.DestQPN = c.DestQPN, c.LocalQPN
		b := mustNew(t, c)
		data := bytes.Repeat([]byte("0123456789abcde\n"), 20*16)
		for i := range 2 {
			wr := WR{ID: uint64(i), Op: WRWrite, Data: data[i*2560:][:2560], VA: 0x1000 + uint64(i)*2560, RKey: mr.RKey, Signaled: true}
			if err := a.PostSend(wr); err != nil {
				t.Fatal(err)
			}
		}
		var out, back Output
		a.Transmit(0, &out, 15)
		for i := range out.Packets {
			if i != 4 && i != 7 {
				b.Input(0, &out.Packets[i], &back)
			}
		}
		sent := map[rocev2.PSN]int{}
		var completions []Completion
		for range 20 {
			out.Reset()
			for i := range back.Packets {
				a.Input(0, &back.Packets[i], &out)
			}
			back.Reset()
			a.Transmit(0, &out, 100)
			for i := range out.Packets {
				sent[out.Packets[i].PSN]++
				b.Input(0, &out.Packets[i], &back)
			}
			completions = append(completions, out.Completions...)
		}
		if !bytes.Equal(region, data) || len(completions) != 2 {
			t.Errorf("%v: the same bytes: %v, completions %+v", p, bytes.Equal(region, data), completions)
		}
		repeated := a.Stats().Retransmitted
		if p == ConnectXRepeat && (repeated != 2 || sent[2] != 1 || sent[5] != 1) {
			t.Errorf("%v: %d packets repeated, %v", p, repeated, sent)
		}
		if p != ConnectXRepeat && repeated < 10 {
			t.Errorf("%v: %d packets repeated, want all from the first gap on", p, repeated)
		}
	}
}

// TestHeldPacketsAreBounded: what is further behind a gap than keeps is discarded, and the
// state of what is held survives its encoding.
func TestHeldPacketsAreBounded(t *testing.T) {
	q, mr, region := receiver(t, ConnectXRepeat)
	keeps := rocev2.PSN(q.responder.traits.keeps)
	var out Output
	write := func(psn rocev2.PSN) *Packet {
		return &Packet{Op: rocev2.WriteOnly, DestQP: 0x11, PSN: psn, AckReq: true, VA: 0x1000 + uint64(psn), RKey: mr.RKey, DMALen: 1, Payload: []byte{byte(psn) | 1}}
	}
	for psn := rocev2.PSN(1); psn < keeps+20; psn++ {
		q.Input(0, write(psn), &out)
	}
	if len(out.Packets) != 1 || q.responder.heldLen != int(keeps) {
		t.Fatalf("%d answers, %d held", len(out.Packets), q.responder.heldLen)
	}
	other, _, _ := receiver(t, ConnectXRepeat)
	if _, err := other.SetState(q.AppendState(nil, 0), 0, statePosted); err != nil || !bytes.Equal(other.AppendState(nil, 0), q.AppendState(nil, 0)) {
		t.Fatalf("what is held does not survive: %v", err)
	}
	for i, x := range []*QP{q, other} {
		x.Input(0, write(0), &out)
		if x.ExpectedPSN() != keeps+1 || x.responder.heldLen != 0 {
			t.Errorf("QP %d expects %d, and holds %d", i, x.ExpectedPSN(), x.responder.heldLen)
		}
	}
	for i := range keeps + 1 {
		if region[i] != byte(i)|1 {
			t.Fatalf("byte %d is %d", i, region[i])
		}
	}
}

// TestNames: each personality has a name of its own, and no trait is left out by mistake.
func TestNames(t *testing.T) {
	names := map[string]bool{}
	for _, p := range Personalities() {
		x := p.traits()
		if names[p.String()] || x.window < x.askEvery || x.rnrWait < 1 || x.ackSyndrome.Kind() != rocev2.KindACK || x.keeps&(x.keeps-1) != 0 {
			t.Errorf("%v: %+v", p, *x)
		}
		names[p.String()] = true
	}
}
