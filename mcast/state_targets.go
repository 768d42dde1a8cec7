// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"encoding/binary"

	"github.com/gleam-rdma/gleam/rocev2"
)

// The encoding of the targets that target messages have named.

func (t *targets) appendState(b []byte) []byte {
	b = append(binary.AppendUvarint(b, uint64(t.count)), bit(t.named, 0))
	b = appendTargets(b, t.acked)
	for i := range t.count {
		u := t.at(i)
		b = appendPSN(b, u.psn)
		b = appendTargets(b, u.legs)
	}
	return b
}

func appendTargets(b []byte, legs []target) []byte {
	for _, x := range legs {
		b = append(b, bit(x.set, 0))
		if x.set {
			b = binary.AppendUvarint(b, x.va)
			b = binary.AppendUvarint(b, uint64(x.rkey))
		}
	}
	return b
}

func (r *stateReader) targets(t *targets) {
	t.first, t.count = 0, uint32(r.uvarint())
	if t.count > maxTargetMessages {
		r.malformed, t.count = true, 0
	}
	t.named = r.byte() != 0
	r.legTargets(t.acked)
	for i := range t.count {
		u := t.at(i)
		u.psn = r.psn()
		r.legTargets(u.legs)
	}
}

func (r *stateReader) legTargets(legs []target) {
	for i := range legs {
		legs[i] = target{}
		if r.byte() != 0 {
			legs[i] = target{r.uvarint(), uint32(r.uvarint()), true}
		}
	}
}

func (r *stateReader) messages(m *messages) {
	m.completed, m.first, m.count = rocev2.MSN(r.uvarint()), 0, 0
	n := r.uvarint()
	if n > maxEnds {
		r.malformed, n = true, 0
	}
	for i := range uint16(n) {
		m.grow()
		m.count++
		*m.at(i) = messageEnd{psn: r.psn(), count: uint32(r.uvarint())}
	}
}
