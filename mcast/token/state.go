// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import "github.com/gleam-rdma/gleam/internal/statecode"

// CodeState writes or reads the state of m, for model checking: two machines with the same
// place and equal encodings behave alike.
func (m *Machine) CodeState(code *statecode.Code) {
	c := stateCode{*code}
	if !c.Reading {
		code.Bytes = m.appendState(&c, c.Bytes)
		return
	}
	m.readState(&c)
	*code = c.Code
	m.eachEdge(func(e *edge) {
		if e.tries = min(e.tries, maxBackoff); e.sent > 0 {
			e.reported = m.report(e)
		}
	})
}

// stateCode is the encoding of a machine. The methods of structs are generated from the tags.
type stateCode struct{ statecode.Code }

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
