// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// The fast path in an encoded state.

func (f *program) encode(b []byte) []byte {
	b = append(b, flag(f.on, 1)|flag(f.moves, 2)|f.source<<2)
	b = appendPSN(appendPSN(b, f.hi), f.limit)
	for i := range f.gates {
		g := &f.gates[i]
		b = append(appendPSN(append(b, flag(g.open, 1)), g.next), byte(g.delta), byte(g.delta>>8), byte(g.delta>>16))
	}
	for _, q := range [][]taken{f.taken, f.queue} {
		b = append(b, byte(len(q)))
		for i := range q {
			b = q[i].encode(append(b, flag(q[i].stored, 1)|flag(q[i].sent, 2)|flag(q[i].reported, 4), q[i].link))
		}
	}
	b = append(b, byte(len(f.todo)))
	for i := range f.todo {
		c := &f.todo[i]
		switch b = append(b, byte(c.kind)); c.kind {
		case giveInput:
			b = c.p.encode(append(b, c.link))
		case closeWord:
			b = append(b, c.leg)
		case openGate, shutGate:
			b = append(appendPSN(append(b, c.leg), c.next), byte(c.by), byte(c.by>>8), byte(c.by>>16))
		}
	}
	return b
}

func appendPSN(b []byte, p rocev2.PSN) []byte { return append(b, byte(p), byte(p>>8), byte(p>>16)) }

func (f *program) decode(b []byte) []byte {
	f.on, f.moves, f.source = b[0]&1 != 0, b[0]&2 != 0, b[0]>>2
	f.hi, f.limit = psnAt(b[1:]), psnAt(b[4:])
	b = b[7:]
	for i := range f.gates {
		f.gates[i] = gate{b[0] != 0, psnAt(b[1:]), uint32(psnAt(b[4:]))}
		b = b[7:]
	}
	for _, q := range []*[]taken{&f.taken, &f.queue} {
		n := int(b[0])
		b, *q = b[1:], (*q)[:0]
		for range n {
			t := taken{stored: b[0]&1 != 0, sent: b[0]&2 != 0, reported: b[0]&4 != 0, link: b[1]}
			b = t.decode(b[2:])
			*q = append(*q, t)
		}
	}
	n := int(b[0])
	b, f.todo = b[1:], f.todo[:0]
	for range n {
		c := chore{kind: choreKind(b[0])}
		switch b = b[1:]; c.kind {
		case giveInput:
			c.link = b[0]
			b = c.p.decode(b[1:])
		case closeWord:
			c.leg, b = b[0], b[1:]
		case openGate, shutGate:
			c.leg, c.next, c.by = b[0], psnAt(b[1:]), uint32(psnAt(b[4:]))
			b = b[7:]
		}
		f.todo = append(f.todo, c)
	}
	return b
}

func (a *acks) encode(b []byte, now time.Duration) []byte {
	b = append(b, flag(a.counting, 1)|flag(a.moved, 2), a.tables)
	b = appendPSN(appendPSN(b, a.granted), rocev2.PSN(a.before))
	b = a.sent.encode(b, now, slices.ContainsFunc(a.words, (word).counts))
	for i := range a.words {
		b = a.words[i].encode(b, now, a.moved && a.words[i].leg)
	}
	for i := range a.scans {
		s := &a.scans[i]
		if !s.on {
			b = append(b, 0)
			continue
		}
		b = append(b, 1|flag(s.found, 2)|flag(s.answered, 4)|flag(s.moves, 8), s.at, s.link, s.tables)
		b = s.p.encode(appendPSN(appendPSN(b, s.lowest), s.limit))
	}
	return b
}

func (a *acks) decode(b []byte, now time.Duration) []byte {
	a.counting, a.moved, a.tables = b[0]&1 != 0, b[0]&2 != 0, b[1]
	a.granted, a.before = psnAt(b[2:]), rocev2.MSN(psnAt(b[5:]))
	b = a.sent.decode(b[8:], now)
	for i := range a.words {
		b = a.words[i].decode(b, now)
	}
	for i := range a.scans {
		s := scan{on: b[0]&1 != 0, found: b[0]&2 != 0, answered: b[0]&4 != 0, moves: b[0]&8 != 0}
		if b = b[1:]; s.on {
			s.at, s.link, s.tables, s.lowest, s.limit = b[0], b[1], b[2], psnAt(b[3:]), psnAt(b[6:])
			b = s.p.decode(b[9:])
		}
		a.scans[i] = s
	}
	return b
}

// counts reports whether a word is open, or the switch is still to be told of it.
func (x word) counts() bool { return x.open || x.read != x.told || x.acked != x.told }

// encode encodes a word. That of the ACK to the source is told with those of the legs, and all are looked at that may have
// moved the limit.
func (x *word) encode(b []byte, now time.Duration, told bool) []byte {
	if !x.counts() && !told {
		return append(b, flag(x.leg, 1))
	}
	b = append(b, flag(x.leg, 1)|flag(x.open, 2)|4)
	b = appendPSN(appendPSN(appendPSN(b, x.acked), x.read), x.told)
	age := uint32(0)
	if x.at != 0 {
		age = uint32(now-x.at) + 1
	}
	return append(b, byte(age), byte(age>>8), byte(age>>16), byte(age>>24))
}

func (x *word) decode(b []byte, now time.Duration) []byte {
	*x = word{leg: b[0]&1 != 0, open: b[0]&2 != 0}
	if b[0]&4 == 0 {
		return b[1:]
	}
	x.acked, x.read, x.told = psnAt(b[1:]), psnAt(b[4:]), psnAt(b[7:])
	if age := uint32(b[10]) | uint32(b[11])<<8 | uint32(b[12])<<16 | uint32(b[13])<<24; age != 0 {
		x.at = now - time.Duration(age-1)
	}
	return b[14:]
}
