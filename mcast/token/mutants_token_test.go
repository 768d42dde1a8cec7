// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to move the token. Their rules are the promises of docs/TREES.md.
var _ = []mutant.Mutant{
	mutant.New("the token is passed while its source sends", "one holder", mutant.In((*Machine).settle,
		"if m.serving == NoMember {",
		"if m.serving == NoMember || m.$1 {", Machine{}.wanted)),
	mutant.New("a turn's end is wanted by nobody", "R85", mutant.In((*Machine).settle,
		"if m.serving == NoMember || len(m.queue) == 0 {\n		m.wanted = false // also where another term is needed\n	}",
		"")),
	mutant.New("a repeated grant is a second token", "one holder", mutant.In((*Machine).cross,
		"case r.Crossings == e.crossings+1 && !e.onThisSide() && m.joined:",
		"case r.Crossings >= e.crossings && !e.onThisSide() && m.joined:")),
	mutant.New("an old report counts", "one holder", mutant.In((*Machine).Receive,
		"if msg.Seq > e.received {",
		"if msg.Seq > 0 {")),
	mutant.New("a term of a later registration counts", "R111", mutant.In((*Machine).Receive,
		"max(msg.Term, msg.Outdated).epoch() > m.cfg.Epoch:",
		"max(msg.Term, msg.Outdated).epoch() > m.cfg.Epoch+1:")),
	mutant.New("the need for a term of a later registration counts", "R111", mutant.In((*Machine).Receive,
		"max(msg.Term, msg.Outdated).epoch() > m.cfg.Epoch:",
		"msg.Term.epoch() > m.cfg.Epoch:")),
	mutant.New("a token that crosses twice counts as requested", "R111", mutant.In((*Machine).cross,
		"case r.Crossings == e.crossings:",
		"case r.Crossings >= e.crossings:")),
	mutant.New("the root makes a token before all have joined", "terms", mutant.In((*Machine).completeTerm,
		`if !m.children[i].joined {
			return
		}`,
		`if !m.children[i].joined && !m.$1.$2 {
			return
		}`, Machine{}.cfg, Config{}.Root)),
	mutant.New("a switch has joined before those below it", "terms", mutant.In((*Machine).completeTerm,
		`if !m.children[i].joined {
			return
		}`,
		`if !m.children[i].joined && m.$1.$2 {
			return
		}`, Machine{}.cfg, Config{}.Root)),
	mutant.New("a term does not begin anew what it counts", "terms", mutant.In((*Machine).join,
		"e.crossings, e.requests, e.joined, e.reserved = 0, false, false, NoMember",
		"e.requests, e.joined, e.reserved = false, false, NoMember")),
	mutant.New("a neighbour that has started again needs no term", "terms", mutant.In((*Machine).Up,
		`if leg == Parent || m.joined {
		m.outdate(m.term)
	}`,
		"")),
	mutant.New("a parent that has started again needs no term", "terms", mutant.In((*Machine).Up,
		"if leg == Parent || m.joined {",
		"if leg != Parent && m.joined {")),
	mutant.New("a removed leg takes the token along", "terms", mutant.In((*Machine).Remove,
		`if m.joined {
			m.outdate(m.term)
		}`,
		"")),
	mutant.New("a child joins a term that has had a token", "terms", mutant.In((*Machine).report,
		`if !e.joined && m.needsTerm() {
			r.Term = 0
		}`,
		"")),
	mutant.New("a switch that is cut off tells nobody", "cut off", mutant.In((*Machine).report,
		`r.Suspended, r.Member = m.suspended, e.reserved
		if !e.joined && m.needsTerm() {`,
		`r.Member = e.reserved
		if !e.joined && m.needsTerm() {`)),
	mutant.New("the unfinished source is not reported", "unfinished", mutant.In((*Machine).report,
		`if m.joined {
		r.Member, r.Doubtful = m.claim, m.doubtful
	}`,
		"")),
	mutant.New("a doubtful claim replaces a certain one", "Claims", mutant.In((*Machine).take,
		"m.doubtful && k != NoMember && !doubtful",
		"k != NoMember && doubtful")),
	mutant.New("no claim is doubtful", "Claims", mutant.In((*Machine).completeTerm,
		"m.claim, m.doubtful = k, !certain",
		"m.claim, m.doubtful = k, false")),
	mutant.New("a source in doubt does not wait for the token", "R86", mutant.In((*Machine).completeTerm,
		"m.enqueue(waiter{member: k}) // also if another one is served first",
		"")),
	mutant.New("a source that was in doubt when its switch joined begins a message", "R86", mutant.In((*Machine).choose,
		"m.serve(k, k == m.claim && m.doubtful, out)",
		"m.serve(k, false, out)")),
	mutant.New("a source that another switch reports is in doubt", "R86", mutant.In((*Machine).choose,
		"m.serve(k, k == m.claim && m.doubtful, out)",
		"m.serve(k, true, out)")),
	mutant.New("a source that was in doubt passes the token on", "R86", mutant.In((*Machine).Rested,
		"if m.doubted {",
		"if false {")),
	mutant.New("the last that waits is served first", "order", mutant.In((*Machine).choose,
		`w := m.queue[0]
	m.queue = m.queue[1:]`,
		`w := m.queue[len(m.queue)-1]
	m.queue = m.queue[:len(m.queue)-1]`)),
	mutant.New("the token is passed without a request for its return", "order", mutant.In((*Machine).pass,
		"e.reserved, e.requests = k, len(m.queue) > 0",
		"e.reserved = k")),
	mutant.New("a request is forwarded once only", "order", mutant.In((*Machine).cross,
		"e.requests, e.reserved = false, NoMember",
		"e.reserved = NoMember")),
	mutant.New("a member that has left is served", "leaving", mutant.In((*Machine).Leave,
		"m.dequeue(waiter{member: k})",
		"")),
	mutant.New("what is lost is not repeated", "messages", mutant.In((*Machine).Advance,
		"e.repeat, e.tries = true, min(e.tries+1, maxBackoff)",
		"e.tries = min(e.tries+1, maxBackoff)")),
	mutant.New("data comes from where the token is not", "data", mutant.In((*Machine).Accepts,
		"return e.joined && e.below()",
		"return e.joined")),
}
