// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statecode

import (
	"bytes"
	"math"
	"testing"
	"time"
)

const now = time.Hour

// parts are values of each type, with what encodes them.
type parts struct {
	b    uint8
	psn  uint32
	u    uint16
	i    int32
	f    float64
	x, y bool
	n    int
	list []uint64
	at   time.Duration
}

func (p *parts) code(c *Code) {
	if p.n = c.Len(p.n, 7); c.Reading {
		ReadByte(c, &p.b)
		ReadPSN(c, &p.psn)
		ReadFloat(c, &p.f)
		p.x = c.ReadFlags() != 0
		ReadList(c, &p.list)
	} else {
		c.Bytes = append(AppendFloat(AppendPSN(AppendByte(c.Bytes, p.b), p.psn), p.f), Bit(p.x))
		c.Bytes = AppendUint(c.Bytes, uint64(len(p.list)))
	}
	p.y = c.Present(p.y)
	Uint(c, &p.u)
	Int(c, &p.i)
	for i := range p.list {
		Uint(c, &p.list[i])
	}
	c.Time(&p.at)
}

// TestRoundTrip: what is written is read again, at another time; fewer bytes are refused.
func TestRoundTrip(t *testing.T) {
	p := parts{200, 0xABCDEF, 65535, -70000, -1.5, true, false, 7, []uint64{0, math.MaxUint64}, now + 5}
	w := Code{Now: now}
	p.code(&w)
	q := parts{y: true, list: make([]uint64, 5)}
	r := Code{Bytes: append(bytes.Clone(w.Bytes), 9), Now: 2 * now, Reading: true}
	q.code(&r)
	if r.Malformed || len(r.Rest()) != 1 || q.at != 2*now+5 {
		t.Errorf("malformed %v, %d bytes left, at %v", r.Malformed, len(r.Rest()), q.at)
	}
	again := Code{Now: 2 * now}
	if q.code(&again); !bytes.Equal(again.Bytes, w.Bytes) {
		t.Errorf("wrote %x, then %x", w.Bytes, again.Bytes)
	}
	for n := range w.Bytes {
		r := Code{Bytes: w.Bytes[:n], Reading: true}
		if q.code(&r); !r.Malformed || len(r.Rest()) != 0 {
			t.Errorf("%d of %d bytes are an encoding", n, len(w.Bytes))
		}
	}
}

// TestBounds: what is cut off, or counts more than there is room for, is refused.
func TestBounds(t *testing.T) {
	for name, c := range map[string]struct {
		write, read func(c *Code)
	}{
		"a length":      {func(c *Code) { c.Len(8, 8) }, func(c *Code) { c.Len(0, 7) }},
		"an empty list": {func(c *Code) { c.Len(3, 3) }, func(c *Code) { v := []bool{}; ReadList(c, &v) }},
		"two bytes":     {func(c *Code) { c.Bytes = []byte{1, 2} }, func(c *Code) { v := uint32(1); ReadPSN(c, &v) }},
		"half a number": {func(c *Code) { c.Bytes = []byte{0x80} }, func(c *Code) { v := uint16(1); Uint(c, &v) }},
		"half a varint": {func(c *Code) { c.Bytes = []byte{0x80} }, func(c *Code) { v := int32(1); Int(c, &v) }},
		"no flags":      {func(*Code) {}, func(c *Code) { c.Present(true) }},
	} {
		w := Code{}
		c.write(&w)
		r := Code{Bytes: w.Bytes, Reading: true}
		if c.read(&r); !r.Malformed {
			t.Errorf("%s is read", name)
		}
	}
}

// TestTimes: each kind of time has one encoding for all times with the same effect.
func TestTimes(t *testing.T) {
	const d, never = time.Minute, 0
	for _, k := range []struct {
		name    string
		write   func(c *Code, b []byte, t time.Duration) []byte
		was, is time.Duration
	}{
		{"time", (*Code).AppendTime, never, never},
		{"time", (*Code).AppendTime, 1, 1},
		{"time", (*Code).AppendTime, now, now},
		{"ahead", (*Code).AppendAhead, now + 1, now + 1},
		{"ahead", (*Code).AppendAhead, now, never},
		{"ahead", (*Code).AppendAhead, 1, never},
		{"since", since(d), now - d, never},
		{"since", since(d), now - d + 1, now - d + 1},
		{"past", past(d), now - d - 1, now - d},
		{"past", past(d), now - d + 1, now - d + 1},
		{"past", past(d), never, never},
		{"past, before the beginning", past(2 * now), 1, 1},
	} {
		c := Code{Now: now}
		r := Code{Bytes: k.write(&c, nil, k.was), Now: now, Reading: true}
		var v time.Duration
		if r.ReadTime(&v); v != k.is || r.Malformed || len(r.Rest()) != 0 {
			t.Errorf("%s: %v is read as %v", k.name, k.was, v)
		}
	}
}

func since(d time.Duration) func(*Code, []byte, time.Duration) []byte {
	return func(c *Code, b []byte, t time.Duration) []byte { return c.AppendSince(b, t, d) }
}

func past(d time.Duration) func(*Code, []byte, time.Duration) []byte {
	return func(c *Code, b []byte, t time.Duration) []byte { return c.AppendPast(b, t, d) }
}
