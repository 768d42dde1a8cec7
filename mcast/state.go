// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/internal/statecode"
	"github.com/gleam-rdma/gleam/rocev2"
)

// AppendState appends the state of s that packets and time can change, in a canonical
// form: two switches with the same groups behave alike from now on if their encodings are
// equal. Times are relative to now. State without further influence (a former source's
// address, the NAK before last) is left out, and so are counters. AppendState is for model
// checking, not for storage: the form may change at any time. The tags of the fields say
// what is encoded (package internal/statecode). It may bring s up to date, without effect
// on what s does.
func (s *Switch) AppendState(b []byte, now time.Duration) []byte {
	c := stateCode{Code: statecode.Code{Bytes: b, Now: now}, sw: s}
	c.groups()
	return c.Bytes
}

// errForeignState reports an encoding that AppendState did not make for these groups.
var errForeignState = errors.New("mcast: not the state of a switch with these groups")

// SetState sets the state of s to the one that AppendState encoded in b, with times
// relative to now, and returns the bytes after the encoding. s must have been given the
// same groups by the same operations. After an error the state of s is undefined.
func (s *Switch) SetState(b []byte, now time.Duration) ([]byte, error) {
	s.repair.used = 0
	s.timers.reset()
	c := stateCode{Code: statecode.Code{Bytes: b, Now: now, Reading: true}, sw: s}
	if c.groups(); c.Malformed {
		return nil, fmt.Errorf("%w (%d bytes)", errForeignState, len(b))
	}
	return c.Rest(), nil
}

// stateCode is the encoding of a switch, at one of its groups. The methods of structs are
// generated. Here is what the tags cannot say.
type stateCode struct {
	statecode.Code
	sw *Switch
	g  *group
}

// groups encodes the groups with their timers, and the departures.
func (c *stateCode) groups() {
	for _, g := range c.sw.groups {
		if g == nil {
			continue
		}
		c.g = g
		c.deadline(g.id)
		g.activate(c.Now)
		g.beginCosts()
		if c.Reading {
			g.readState(c)
			c.derive()
			continue
		}
		g.applyAllPauses()
		g.rtt.pending = g.isTiming()
		c.Bytes = g.appendState(c, c.Bytes)
	}
	if d := &c.sw.departures; !c.sw.anyVerifies() {
	} else if c.Reading {
		d.readState(c)
	} else {
		c.Bytes = d.appendState(c, c.Bytes)
	}
}

// anyVerifies reports whether some group verifies the numberings of its receivers.
func (s *Switch) anyVerifies() bool {
	return slices.ContainsFunc(s.groups, func(g *group) bool { return g != nil && g.numbering.interval > 0 })
}

// deadline encodes the time in the timers, as that of deadlines.
func (c *stateCode) deadline(id GroupID) {
	var d deadlines
	if at, armed := c.sw.timers.deadline(id); armed {
		d.arm(0, at)
	}
	if c.Time(&d[0]); c.Reading && d.armed(0) {
		c.sw.timers.arm(id, d.at(0))
	}
}

// derive sets the fields of a group that follow from those that were read, and refuses
// what no encoding has.
func (c *stateCode) derive() {
	g := c.g
	s, x := &g.src, g.tree()
	isMember := func(k int32) bool { // or none
		return k >= none && int(k) < len(g.members)
	}
	g.turn.misses = min(g.turn.misses, maxMisses)
	if !isMember(s.member) || !isMember(g.turn.next) || !isMember(int32(g.extra.resume.source)) || x != nil && !(isMember(x.edges.asked) && isMember(x.edges.relay.member)) ||
		g.repair.path >= numOffloadStates || g.is(holding) && (!g.mayHold() || s.member == none) {
		c.Malformed = true
		return
	}
	s.leg, s.addr, s.neighbor = none, rocev2.AddrKey{}, 0
	if s.member != none {
		m := &g.members[s.member]
		s.leg, s.addr, s.neighbor = int32(m.leg), m.ip, g.legs[m.leg].neighbor
	}
	for i := range g.acks {
		b, state := &g.acks[i], g.activity[i].recovery.state
		c.Malformed = c.Malformed || state >= numRecoveryStates || g.repair.store != nil && (state == inSync) != (b.flags&recovering == 0 || b.flags&isReceiver == 0)
	}
	if g.is(holding) {
		for i := range g.repair.store.held.packets {
			p := &g.repair.store.held.packets[i]
			p.Group, p.Src, p.Neighbor, p.DestQP, p.Verified = g.ip.Addr(), s.addr.Addr(), s.neighbor, g.qpn, true
		}
	}
}

// extra encodes what most groups have nothing of. A group without extra has an empty one.
func (c *stateCode) extra(g *group) {
	if c.Reading {
		g.newExtra().readState(c)
		return
	}
	x := g.extra
	if x == nil {
		x = new(extra)
	}
	c.Bytes = x.appendState(c, c.Bytes)
}

// history encodes the histories of all members, of which the table may have a part.
func (c *stateCode) history(x *extra) {
	counts := func(h memberHistory) bool { return h.refusalReported || h.waits != 0 || h.quarantinedUntil > c.Now }
	if !c.Present(slices.ContainsFunc(x.history, counts)) {
		if c.Reading {
			clear(x.history)
		}
		return
	}
	for i := range c.g.members {
		c.Index = i
		was := c.g.historyOf(MemberID(i))
		is := c.Present(counts(was))
		if !c.Reading {
			if is {
				c.Bytes = was.appendState(c, c.Bytes)
			}
			continue
		}
		h := memberHistory{}
		if is {
			h.readState(c)
		}
		if h.waits > c.Now { // as waits says
			h.waits = 1
		}
		if h != was {
			*c.g.newHistory(MemberID(i)) = h
		}
	}
}

// waits is the time since which a member waits. That of the next member has no effect: it
// has waited longest. That of another one decides which of them is next after it; in a tree
// the token's machine has their order.
func (c *stateCode) waits(h *memberHistory) time.Duration {
	switch {
	case h.waits != 0 && int32(c.Index) == c.g.turn.next:
		return c.Now + 1
	case h.waits != 0 && c.g.tree() != nil:
		return max(h.waits, c.Now-turnReserved, 1)
	}
	return h.waits
}

// oldestLastPSN returns the age from which on the time of the source's last packet has the
// same effect.
func (g *group) oldestLastPSN() time.Duration {
	if g.tree() != nil {
		return max(MaxInOrderGap+1, g.turn.sourceTimeout)
	}
	return MaxInOrderGap + 1
}

// longestTurn returns the time from which on it makes no difference how long members have
// waited.
func (g *group) longestTurn() time.Duration {
	d := g.turn.time << g.turn.misses
	if g.tree() == nil {
		return d
	}
	return max(d, turnReserved, g.turn.sourceTimeout)
}

// mayResume reports whether g can be in a turn that has begun without this switch.
func (g *group) mayResume() bool { return g.numbering.interval > 0 || g.tree() != nil }

// hasFastPath reports whether g may be offloaded.
func (g *group) hasFastPath() bool { return g.extra != nil && g.extra.offload != nil }

// notesGaps reports whether gaps in the source's packets have an influence: receivers are
// verified (R53), or losses repaired (R92).
func (g *group) notesGaps() bool { return g.numbering.interval > 0 || g.repair.store != nil }

// receives reports whether the leg is a receiver.
func (c *stateCode) receives() bool { return c.g.acks[c.Index].flags&isReceiver != 0 }

// watched reports whether the times of the leg's silence and lag have an influence.
func (c *stateCode) watched() bool { return c.g.due.armed(livenessCheck) && c.receives() }

// silence is the longest time that the leg may be silent: the bound of livenessTimeout.
func (c *stateCode) silence() time.Duration {
	g, i := c.g, c.Index
	return max(g.deadAfterOf(i), g.live.deadAfterMax, g.live.allDeadAfter()) + 2*c.sw.ports.port(g.legs[i].port).txDelay
}

// patience is the longest time that the leg may be silent while it is probed.
func (c *stateCode) patience() time.Duration {
	return max(c.g.probePatience(c.Index), c.g.live.allDeadAfter())
}

// probedFrom is legActivity.probedFrom, where it has an influence.
func (c *stateCode) probedFrom(t *legActivity) time.Duration {
	if v := &c.g.numbering.checks[c.Index]; v.pending && (v.probesSent == 0 && v.returning || v.probesSent > 0 && c.g.is(blocked)) {
		return t.probedFrom
	}
	return 0
}

// legRecovery encodes the local repair of the leg. Without a store its round trips may count.
func (c *stateCode) legRecovery(t *legActivity) {
	g, m := c.g, &t.recovery
	if c.Reading {
		*m = recovery{}
	}
	if g.repair.store != nil {
		if c.receives() && c.Reading {
			m.readState(c)
		} else if c.receives() {
			c.Bytes = m.appendState(c, c.Bytes)
		}
	} else if g.live.deadAfterMax > 0 {
		lossAt := c.lossAt()
		c.Time(&lossAt)
		statecode.Int(&c.Code, &m.rtt)
		if statecode.Int(&c.Code, &m.rttVar); c.Reading {
			m.lossAt, m.resentPSN = lossAt, g.acks[c.Index].acked
		}
	}
}

// lossAt is recovery.lossAt, of which it counts only whether it makes the measurement under
// way void for the leg.
func (c *stateCode) lossAt() time.Duration {
	if c.g.rttVoid(c.Index) {
		return c.g.rtt.sentAt + 1
	}
	return 0
}

// rttFrom is recovery.rttFrom, where it makes the measurement under way count from later on.
func (c *stateCode) rttFrom(m *recovery) time.Duration {
	if c.g.isTiming() && c.g.rtt.sentAt < m.rttFrom && !c.g.rttVoid(c.Index) {
		return m.rttFrom
	}
	return 0
}

func (c *stateCode) expectedACK(m *recovery) rocev2.PSN {
	if a := c.g.acks[c.Index].acked; !a.Less(m.expectedACK) {
		return a
	}
	return m.expectedACK
}

// timesProbe reports whether the leg's PTO may pass. A leg that is escalated and may be
// silent for ever is not probed before its next feedback.
func (c *stateCode) timesProbe(m *recovery) bool {
	return c.g.acks[c.Index].acked.Less(m.expectedACK) && (!m.escalated || c.g.live.deadAfter > 0)
}

// limit encodes forwarding.limit, which may be no PSN.
func (c *stateCode) limit(f *forwarding) { statecode.Uint(&c.Code, &f.limit) }

// path is localRepair.path. Copies that have drained are of no account.
func (c *stateCode) path() offloadState {
	if p := c.g.repair.path; p != draining || c.Now < c.g.extra.offload.drainUntil {
		return p
	}
	return corePath
}

// drainUntil is offload.drainUntil, where copies drain.
func (c *stateCode) drainUntil(x *offload) time.Duration {
	if c.g.repair.path == draining {
		return x.drainUntil
	}
	return 0
}
