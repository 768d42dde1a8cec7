// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"encoding/binary"
	"errors"
	"time"
)

// Bits of an edge's encoding.
const (
	edgeRequests = 1 << iota
	edgeJoined
	edgeUp
	edgeUnacknowledged
)

// AppendState appends the state of m, for model checking: two machines with the same place
// and equal encodings behave alike. Times are relative to now.
func (m *Machine) AppendState(b []byte, now time.Duration) []byte {
	b = binary.AppendUvarint(b, uint64(m.term))
	b = binary.AppendUvarint(b, uint64(m.outdated))
	b = append(b, bits(m.joined, m.suspended, m.wanted, m.doubtful))
	for _, k := range []Member{m.serving, m.reserved, m.claim} {
		b = binary.AppendUvarint(b, uint64(k))
	}
	b = binary.AppendUvarint(b, uint64(len(m.queue)))
	for _, w := range m.queue {
		b = binary.AppendVarint(binary.AppendUvarint(b, uint64(w.member)), int64(w.leg))
	}
	b = binary.AppendUvarint(b, uint64(len(m.children)))
	m.eachEdge(func(e *edge) { b = e.appendState(b, now) })
	return b
}

func bits(flags ...bool) (b byte) {
	for i, f := range flags {
		if f {
			b |= 1 << i
		}
	}
	return b
}

// appendState leaves out the numbers of a session that is over, and the report, which
// follows from the rest.
func (e *edge) appendState(b []byte, now time.Duration) []byte {
	b = binary.AppendVarint(b, int64(e.leg))
	b = append(b, bits(e.requests, e.joined, e.up(), e.unacknowledged()))
	b = binary.AppendUvarint(b, e.crossings)
	b = binary.AppendUvarint(b, uint64(e.reserved))
	if !e.up() {
		return b
	}
	for _, n := range []uint64{e.session, e.sent, e.acked, e.received} {
		b = binary.AppendUvarint(b, n)
	}
	if e.unacknowledged() {
		b = binary.AppendVarint(append(b, e.tries), int64(e.deadline-now))
	}
	return b
}

// ErrState reports bytes that AppendState has not made.
var ErrState = errors.New("token: not the state of a machine")

// SetState sets the state of m to the one that AppendState encoded in b, and returns the
// bytes after the encoding. After an error the state of m is undefined.
func (m *Machine) SetState(b []byte, now time.Duration) ([]byte, error) {
	r := stateReader{b: b}
	m.term, m.outdated = Term(r.uvarint()), Term(r.uvarint())
	f := r.byte()
	m.joined, m.suspended, m.wanted, m.doubtful = f&1 != 0, f&2 != 0, f&4 != 0, f&8 != 0
	m.serving, m.reserved, m.claim = Member(r.uvarint()), Member(r.uvarint()), Member(r.uvarint())
	m.queue = m.queue[:0]
	for n := r.count(); n > 0; n-- {
		m.queue = append(m.queue, waiter{Member(r.uvarint()), Leg(r.varint())})
	}
	m.children = m.children[:0]
	for n := r.count(); n > 0; n-- {
		m.children = append(m.children, edge{})
	}
	m.parent = edge{}
	m.eachEdge(func(e *edge) { r.edge(e, now) })
	m.eachEdge(func(e *edge) {
		if e.sent > 0 {
			e.reported = m.report(e)
		}
	})
	if r.bad {
		return nil, ErrState
	}
	return r.b, nil
}

type stateReader struct {
	b   []byte
	bad bool
}

func (r *stateReader) edge(e *edge, now time.Duration) {
	e.leg = Leg(r.varint())
	f := r.byte()
	e.requests, e.joined = f&edgeRequests != 0, f&edgeJoined != 0
	e.crossings, e.reserved = r.uvarint(), Member(r.uvarint())
	if f&edgeUp == 0 {
		return
	}
	e.session, e.sent, e.acked, e.received = r.uvarint(), r.uvarint(), r.uvarint(), r.uvarint()
	if r.bad = r.bad || e.session == 0; f&edgeUnacknowledged != 0 {
		e.tries, e.deadline = min(r.byte(), maxBackoff), now+time.Duration(r.varint())
	}
}

func (r *stateReader) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

// count reads a number of parts, each of which takes two bytes at least.
func (r *stateReader) count() uint64 {
	v := r.uvarint()
	if v > uint64(len(r.b))/2 {
		r.bad = true
		return 0
	}
	return v
}

func (r *stateReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *stateReader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// Numbers returns the sequence numbers of the edge of a leg, and whether it is up.
func (m *Machine) Numbers(leg Leg) (sent, acked, received uint64, up bool) {
	e := m.edge(leg)
	if e == nil || !e.up() {
		return 0, 0, 0, false
	}
	return e.sent, e.acked, e.received, true
}

// Renumber takes a number off those of the reports that this end of a leg has sent, and
// one off those that it has received. Where the other end and the messages between them
// are changed alike, nothing else changes: a model has fewer states then.
func (m *Machine) Renumber(leg Leg, sent, received uint64) {
	if e := m.edge(leg); e != nil && e.up() {
		e.sent, e.acked, e.received = e.sent-sent, e.acked-sent, e.received-received
	}
}
