// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/gleam-rdma/gleam/rocev2"

// The fast path in an encoded state.

func (f *program) encode(b []byte) []byte {
	b = append(b, flag(f.on, 1)|f.source<<1)
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
		case openGate, shutGate:
			b = append(appendPSN(append(b, c.leg), c.next), byte(c.by), byte(c.by>>8), byte(c.by>>16))
		}
	}
	return b
}

func appendPSN(b []byte, p rocev2.PSN) []byte { return append(b, byte(p), byte(p>>8), byte(p>>16)) }

func (f *program) decode(b []byte) []byte {
	f.on, f.source = b[0]&1 != 0, b[0]>>1
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
		case openGate, shutGate:
			c.leg, c.next, c.by = b[0], psnAt(b[1:]), uint32(psnAt(b[4:]))
			b = b[7:]
		}
		f.todo = append(f.todo, c)
	}
	return b
}
