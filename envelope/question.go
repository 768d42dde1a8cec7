// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"time"
)

// A switch that has started again without state knows no group, and nobody whom it could tell. So its
// hosts ask: the master renews often (MasterConfig.RenewWithin), and each member sends a Renew of its
// own, a question, which extends nothing. A Reject of the unknown group answers it, under the group's key
// and for the transaction under way: who cannot answer in the switch's name makes nobody believe in a
// restart.

// membersPerQuestion is the number of members of a group that ask one after the other, in
// MemberConfig.AskEvery; in larger groups each asks more rarely.
const membersPerQuestion = 256

// groupsPerQuestion is the number of groups of a host that ask in MemberConfig.AskEvery; each further one asks more
// rarely, so that a host in thousands of groups sends some tens of questions a second.
const groupsPerQuestion = 32

// hastenedGap is the time from one hastened question to the next.
const hastenedGap = 5 * time.Millisecond

// unknownTwice is the number of answers in a row that have to say that the group is unknown: a switch of a
// tree that has started again may be about to be given the group again.
const unknownTwice = 2

// question is a member's question whether the switch still knows its group.
type question struct {
	timer   backoff // next is when the next one is sent; 0: none is
	every   time.Duration
	tx      uint32 // the number of the question under way; valid if asked
	asked   bool
	unknown int // answers in a row that the group is unknown
}

// startAsking starts the timer of the questions about membership g. The larger its group is, and the more
// groups the host has, the rarer they are.
func (m *Member) startAsking(now time.Duration, g *membership, members int) {
	g.question = question{every: m.cfg.AskEvery * time.Duration(1+members/membersPerQuestion+(len(m.groups)-1)/groupsPerQuestion)}
	if m.cfg.AskEvery > 0 {
		g.question.timer.start(now, g.question.every, &m.random)
	}
}

// asks reports whether questions about g are due at some time.
func (g *membership) asks() bool {
	return g.question.timer.next != 0 && g.epoch != 0 && !g.ended && !g.leaving
}

func (m *Member) ask(now time.Duration, g *membership, out *Output) {
	q := &g.question
	m.lastTx++
	q.tx, q.asked = m.lastTx, true
	q.timer.start(now, q.every, &m.random)
	m.sendQuestion(g, out)
}

func (m *Member) sendQuestion(g *membership, out *Output) {
	m.toSwitch(g.key, g.Group, g.epoch, g.instance, g.question.tx, &Renew{}, out)
}

// asked returns the membership whose question msg answers, or nil.
func (m *Member) asked(msg *Message, out *Output) *membership {
	g := m.groups[msg.Group]
	if g == nil || !g.asks() || !g.question.asked || msg.Transaction != g.question.tx || msg.Epoch != g.epoch || msg.KeyID != g.key {
		m.drop(Unsolicited, out)
		return nil
	}
	return g
}

// questionAnswered processes the answer to a question; p is nil if the switch knows the group.
func (m *Member) questionAnswered(now time.Duration, msg *Message, p *Problem, out *Output) {
	g := m.asked(msg, out)
	if g == nil {
		return
	}
	q := &g.question
	q.asked = false
	if p == nil || p.Reason != UnknownGroup {
		q.unknown, g.instance = 0, msg.Instance
		return
	}
	if len(m.groups) > groupsPerQuestion { // few ask often enough
		m.hasten(now)
		q.timer.next = min(q.timer.next, now+2*m.cfg.AskEvery)
	}
	if q.unknown++; q.unknown < unknownTwice {
		return
	}
	m.end(g, g.epoch, Forgotten, out)
}

// hasten brings forward the questions about all groups, one after the other, since a switch that does not know
// one of them may have started again.
func (m *Member) hasten(now time.Duration) {
	if now < m.hastenedUntil {
		return
	}
	at := now + m.cfg.AskEvery
	for _, ip := range sortedKeys(m.groups) {
		if g := m.groups[ip]; g.asks() {
			at += hastenedGap
			g.question.timer.next = min(g.question.timer.next, at)
			m.schedule(g)
		}
	}
	m.hastenedUntil = at
}

// questionChallenged repeats the question for the registrar's new instance.
func (m *Member) questionChallenged(msg *Message, out *Output) {
	g := m.asked(msg, out)
	switch {
	case g == nil:
	case msg.Instance == 0 || msg.Instance == g.instance:
		m.drop(DuplicateMsg, out)
	default:
		g.instance = msg.Instance
		m.sendQuestion(g, out)
	}
}

// isQuestion reports whether m is a question of a member: it comes from the port that members have.
func (r *Registrar) isQuestion(m *Message) bool {
	g := r.groups[m.Group]
	return m.Type == TypeRenew && m.ReplyTo.Port() == r.cfg.Port && (g == nil || m.ReplyTo != g.reg.Master)
}

// answerQuestion says whether the group is known. Of one that is about to be installed it says nothing.
func (r *Registrar) answerQuestion(m *Message, out *Output) {
	switch g := r.groups[m.Group]; {
	case g != nil:
		r.reply(&m.Header, &Accept{Request: TypeRenew, Members: len(g.reg.Members), Lease: g.reg.Lease}, out)
	case r.locating[m.Group] != nil:
		r.drop(UnknownGroupMsg, out)
	default:
		r.rejectRequest(&m.Header, Problem{Reason: UnknownGroup}, out)
	}
}
