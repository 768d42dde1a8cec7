// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// TestConfigLimits: the ends of each range are taken, what is next to them is not.
func TestConfigLimits(t *testing.T) {
	psn := func(f func(*Config) *rocev2.PSN) func(*Config, int) {
		return func(c *Config, v int) { *f(c) = rocev2.PSN(v) }
	}
	small := func(f func(*Config) *uint8) func(*Config, int) { return func(c *Config, v int) { *f(c) = uint8(v) } }
	whole := func(f func(*Config) *int) func(*Config, int) { return func(c *Config, v int) { *f(c) = v } }
	for _, x := range []struct {
		name        string
		set         func(*Config, int)
		least, most int
	}{
		{"SQPSN", psn(func(c *Config) *rocev2.PSN { return &c.SQPSN }), 0, 1<<24 - 1},
		{"RQPSN", psn(func(c *Config) *rocev2.PSN { return &c.RQPSN }), 0, 1<<24 - 1},
		{"RetryCnt", small(func(c *Config) *uint8 { return &c.RetryCnt }), 0, 7},
		{"RNRRetry", small(func(c *Config) *uint8 { return &c.RNRRetry }), 0, 7},
		{"MinRNRTimer", small(func(c *Config) *uint8 { return &c.MinRNRTimer }), 0, 31},
		{"MaxUnacked", func(c *Config, v int) { c.MaxUnacked, c.AckReqEvery = v, 1 }, 1, 1 << 22},
		{"AckReqEvery", whole(func(c *Config) *int { return &c.AckReqEvery }), 1, 128},
		{"SendDepth", whole(func(c *Config) *int { return &c.SendDepth }), 1, 1 << 20},
		{"RecvDepth", whole(func(c *Config) *int { return &c.RecvDepth }), 1, 1 << 20},
		{"FrameOverhead", whole(func(c *Config) *int { return &c.FrameOverhead }), 0, 1 << 10},
		{"Timeout", func(c *Config, v int) { c.Timeout = time.Duration(v) }, 0, 1 << 40},
		{"Personality", func(c *Config, v int) { c.Personality = Personality(v) }, 0, int(numPersonalities) - 1},
	} {
		for _, v := range []int{x.least, x.most, x.least - 1, x.most + 1} {
			if v == 0 && x.least == 1 {
				v = -1 // 0 is the default
			}
			c := goodConfig()
			x.set(&c, v)
			err := c.complete()
			if in := v >= x.least && v <= x.most || x.name == "Timeout" && v > 0; in != (err == nil) || !in && !strings.Contains(err.Error(), x.name+" is ") {
				t.Errorf("%s %d: %v", x.name, v, err)
			}
		}
	}
}

// asking returns the packets that ask for an ACK, of a message of n packets. The numbers
// are those of packets; gap is the time between two.
func asking(t *testing.T, c Config, n int, gap time.Duration) (list []int) {
	t.Helper()
	q := mustNew(t, c)
	if err := q.PostSend(WR{Data: make([]byte, n*c.PMTU)}); err != nil {
		t.Fatal(err)
	}
	var out Output
	for i := range n {
		if q.Transmit(time.Duration(i)*gap, &out, 1) != 1 {
			break
		}
		if out.Packets[i].AckReq {
			list = append(list, i)
		}
	}
	return list
}

// TestWhichPacketsAsk: the last packet of a message asks for an ACK; in between rxe counts
// packets, hardware goes by the place in the message, and asks where the window closes.
func TestWhichPacketsAsk(t *testing.T) {
	for _, x := range []struct {
		p             Personality
		every, window int
		want          []int
	}{
		{RXE, 1, 100, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{RXE, 3, 100, []int{2, 5, 8, 9}},
		{RXE, 4, 6, []int{3}},
		{Strict, 1, 100, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{Strict, 3, 100, []int{3, 6, 9}},
		{Strict, 4, 6, []int{4, 5}},
		{Strict, 6, 6, []int{5}},
		{Strict, 100, 100, []int{9}},
	} {
		c := goodConfig()
		c.Personality, c.AckReqEvery, c.MaxUnacked = x.p, x.every, x.window
		if got := asking(t, c, 10, 0); !slices.Equal(got, x.want) {
			t.Errorf("%v, every %d of %d: %v, want %v", x.p, x.every, x.window, got, x.want)
		}
	}
}

// TestPacedSenderAsks: a paced sender asks when the next packet would come later than a
// quarter of the timeout after the first that has not asked; without a timeout it need not.
func TestPacedSenderAsks(t *testing.T) {
	// A frame takes 1 ms.
	for _, x := range []struct {
		timeout time.Duration
		want    []int
	}{
		{0, []int{9}},
		{24 * time.Millisecond, []int{5, 9}},
		{12 * time.Millisecond, []int{2, 5, 8, 9}},
		{11 * time.Millisecond, []int{2, 5, 8, 9}},
		{4 * time.Millisecond, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
	} {
		c := goodConfig()
		c.MaxRate, c.Timeout, c.AckReqEvery = (12+1024+4)*8*1000, x.timeout, 100
		q := mustNew(t, c)
		if err := q.PostSend(WR{Data: make([]byte, 10*c.PMTU)}); err != nil {
			t.Fatal(err)
		}
		var out Output
		q.requester.pacer.OnSent(0, 1<<16) // what may go at once has gone
		start := q.requester.pacer.NextSend(0)
		var got []int
		for now := start; len(out.Packets) < 10; now = q.requester.pacer.NextSend(now) {
			if q.Transmit(now, &out, 1) != 1 {
				t.Fatalf("nothing sent at %v", now)
			}
			if i := len(out.Packets) - 1; out.Packets[i].AckReq {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("timeout %v: %v, want %v", x.timeout, got, x.want)
		}
	}
}

// TestPacketsCountWhole: the rate counts what is around a payload, the padded payload, and
// the headers of the opcode.
func TestPacketsCountWhole(t *testing.T) {
	for _, x := range []struct {
		op   WROp
		size int
		want int
	}{
		{WRSend, 0, 42 + 12 + 4}, {WRSend, 1, 42 + 12 + 4 + 4}, {WRSendImm, 4, 42 + 12 + 4 + 4 + 4},
		{WRWrite, 5, 42 + 12 + 16 + 8 + 4}, {WRWriteImm, 8, 42 + 12 + 16 + 4 + 8 + 4},
	} {
		c := pacedConfig()
		c.MaxRate = 8e6 // a byte takes a microsecond
		q := mustNew(t, c)
		for range 3 {
			if err := q.PostSend(WR{Op: x.op, Data: make([]byte, x.size)}); err != nil {
				t.Fatal(err)
			}
		}
		var out Output
		q.requester.pacer.OnSent(0, 1<<16)
		now := q.requester.pacer.NextSend(0)
		q.Transmit(now, &out, 1)
		if got := q.requester.pacer.NextSend(now) - now; got != time.Duration(x.want)*time.Microsecond {
			t.Errorf("%v of %d bytes counts as %v, want %d bytes", x.op, x.size, got, x.want)
		}
		if n := q.Transmit(now, &out, 1); n != 0 {
			t.Errorf("%v: %d more at once", x.op, n)
		}
		if at, ok := q.NextDeadline(); !ok || at != now+time.Duration(x.want)*time.Microsecond {
			t.Errorf("%v: next at %v %v, want the pacer's time, which is before the timeout", x.op, at, ok)
		}
		q.requester.timer.arm(now + 1)
		if at, _ := q.NextDeadline(); at != now+1 {
			t.Errorf("%v: next at %v, want the timeout, which is first", x.op, at)
		}
	}
}

// TestTimerRunsFromTheFirst: what is sent later does not put the timeout off.
func TestTimerRunsFromTheFirst(t *testing.T) {
	q := mustNew(t, goodConfig())
	if err := q.PostSend(WR{Data: make([]byte, 3000)}); err != nil {
		t.Fatal(err)
	}
	var out Output
	for i := range 3 {
		q.Transmit(time.Duration(i)*100*time.Microsecond, &out, 1)
		if at, ok := q.NextDeadline(); !ok || at != time.Millisecond {
			t.Errorf("after packet %d: %v %v", i, at, ok)
		}
	}
}

// TestErrorState: a QP that has failed drops and counts what comes, has no deadline and
// nothing to send, and lets go of what it held.
func TestErrorState(t *testing.T) {
	q := mustNew(t, goodConfig())
	if err := q.PostSend(WR{Data: make([]byte, 3000)}); err != nil {
		t.Fatal(err)
	}
	var out Output
	q.Transmit(0, &out, 2)
	q.requester.pacerTimer.arm(1)
	q.Fail(&out)
	if q.requester.timer.armed || q.requester.rnrTimer.armed || q.requester.pacerTimer.armed || q.requester.sendQueue.count != 0 {
		t.Errorf("%+v", q.requester)
	}
	out.Reset()
	q.Input(0, answer(1, rocev2.SyndromeACK), &out)
	if s := q.Stats(); s.DroppedState != 1 || len(out.Packets)+len(out.Completions) > 0 || q.Transmit(0, &out, 9) != 0 {
		t.Errorf("%+v %+v", s, out)
	}
	if err := q.PostSend(WR{Op: numWROps}); !errors.Is(err, ErrState) {
		t.Error(err)
	}
	q = mustNew(t, goodConfig())
	if err := q.PostSend(WR{Op: numWROps}); err == nil || !strings.Contains(err.Error(), "unknown operation") {
		t.Error(err)
	}
}

// TestNothingIsHeld: buffers of the application are let go when their work is done.
func TestNothingIsHeld(t *testing.T) {
	var out Output
	out.Packets = append(out.Packets, Packet{Payload: []byte{1}})
	out.Reset()
	if out.Packets[:1][0].Payload != nil {
		t.Error("an output that was reset has a payload")
	}
	r := newRing[[]byte](3)
	for i := range 7 { // around it twice
		for n := range 3 {
			*r.push() = []byte{byte(i), byte(n)}
		}
		for n := range 3 {
			if got := *r.at(0); got[0] != byte(i) || got[1] != byte(n) || (*r.at(r.count - 1))[1] != 2 {
				t.Fatalf("round %d, entry %d: %v", i, n, got)
			}
			r.pop()
		}
		for _, b := range r.buf {
			if b != nil {
				t.Fatal("an entry that was popped is still there")
			}
		}
		*r.push() = []byte{9}
		r.pop()
	}
}

// TestRKeys: R_Keys are drawn from a sequence that looks random, and is the same for the
// same seed; without memory there is nothing to write to or to invalidate.
func TestRKeys(t *testing.T) {
	m := NewMemory(1)
	var keys []string
	for range 4 {
		mr, err := m.RegisterMR(make([]byte, 4), 0, RemoteWrite)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, fmt.Sprintf("%08x", mr.RKey))
	}
	// The upper halves of splitmix64(1).
	if got := strings.Join(keys, " "); got != "910a2dec beeb8da1 f893a2ee 71c18690" {
		t.Error(got)
	}
	var none *Memory
	if none.invalidate(1) || none.writable(1, 0, 1) != nil {
		t.Error("no memory has a region")
	}
}
