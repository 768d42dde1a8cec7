// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// What a driver stores of a group so that it resumes after a restart (R83): the positions
// of its members at one moment. From the positions and the PSN that a receiver expects
// follows what the receiver has of the source's packets.

const (
	// storeEvery is the number of PSNs after which the positions are due again.
	storeEvery = 1 << 20
	// maxUnstored is how far beyond the stored positions data is forwarded. A receiver
	// that is further beyond its stored position cannot be told from one with other
	// numbers, and a keepalive probe would be new data to it.
	maxUnstored = 1 << 22
	// maxHeld is how far beyond the stored positions a receiver may hold packets out of order. An
	// RNIC holds no more than its source has on the way: 64 Ki packets of 4 KiB are 256 MiB.
	maxHeld = 1 << 16
	// unlimited is the forwarding.limit of a group that is not stored. It is no PSN.
	unlimited rocev2.PSN = rocev2.PSNMask + 1
)

// Position is that of a member's queue pair.
type Position struct {
	Known   bool       // false: the member receives from the next message on, and has its registered PSNs
	Send    rocev2.PSN // the next one of its send queue
	Receive rocev2.PSN // the next one of its receive queue
	// Joining: the source's data goes to the member, or to the switch that it is behind, from the next
	// message on. It has had nothing of the turn.
	Joining bool
	// FullHistory: 2^22 PSNs before Send, or more, were acknowledged to the member in its registration. PSNs
	// wrap, so the distance from its registered PSN does not tell (R63).
	FullHistory bool
}

// Positions relate the PSNs of the members to each other. The source's packet with the PSN
// Send of its position has, for each other member, the PSN Receive of that one's, and all
// these members have all packets before it. Without a source the members are between two
// turns.
type Positions struct {
	HasSource bool
	Source    MemberID
	Members   []Position // the members' positions, by MemberID
}

// storage is about the positions that were reported last, of a group that is stored.
// forwarding.limit is where data waits for newer ones.
type storage struct {
	reported rocev2.PSN `state:"encoded"` // the source's position
	number   uint32     `state:"encoded"`
}

// reportPositions makes the positions due.
func (g *group) reportPositions(out *Output) {
	s := &g.storage
	s.number++
	g.set(mayHold, false)
	s.reported = g.lowestReceived().Next()
	g.decided().Positions = s.number
	out.Events = append(out.Events, Event{Kind: PositionsDue, Group: g.id})
}

// isBeforeRestart reports whether psn, of which an ACK has come, may have been forwarded before the switch
// restarted: the receiver held it out of order, and has got what was missing.
func (g *group) isBeforeRestart(psn rocev2.PSN) bool {
	return g.is(mayHold) && psn.Less(g.storage.reported.Add(maxHeld))
}

// isDurable reports whether the durable positions are those that psn may be forwarded with. nxt may be
// beyond limit: what a neighbour says raises it (raiseNxt).
func (f *forwarding) isDurable(psn rocev2.PSN) bool { return f.limit == unlimited || psn.Less(f.limit) }

// setNxt sets nxt, and limit, from which on data waits.
func (g *group) setNxt(nxt, limit rocev2.PSN) {
	g.fwd.nxt, g.fwd.limit = nxt, limit
	g.set(unstored, !g.fwd.isDurable(nxt))
}

// storeBeforeData makes the source's new data wait until the present positions are
// durable: the turn has just begun, or receivers have joined.
func (g *group) storeBeforeData(out *Output) {
	if g.policy.stored {
		g.setNxt(g.fwd.nxt, g.fwd.nxt)
		g.set(awaitsFile, false)
		g.reportPositions(out)
	}
}

// beginStoring has the positions of a group stored that were not so far. The switch has its first
// member of its own.
func (g *group) beginStoring(out *Output) {
	if g.policy.stored = true; g.src.member != none && !g.is(failed) {
		g.storeBeforeData(out)
	}
}

// isRequested reports whether the source, which is at this switch, was sent a NAK of the packet at
// nxt that waited here: it goes back to that packet, and sends all behind it once more (R102).
func (g *group) isRequested() bool {
	if g.src.neighbor != 0 || !g.policy.stored || g.is(joiners) {
		return false
	}
	return g.agg.request.severity == sevSequence && g.agg.request.awaits(g.fwd.nxt)
}

// waitsForFile reports whether the source has sent data that waits until the positions are
// durable, or has been asked for it since then and has not sent it again. The turn of a
// source behind another switch is that switch's.
func (g *group) waitsForFile() bool {
	return g.src.neighbor == 0 && (g.is(awaitsFile) || g.policy.stored && g.is(asking))
}

// forgetAwaited forgets that the source has sent data that waits. It reports whether the
// source is at rest now: nothing of that data was forwarded.
func (g *group) forgetAwaited() bool {
	g.set(awaitsFile|asking, false)
	return g.isQuiescent()
}

// lowestReceived returns the PSN of the source up to which every receiver has all.
func (g *group) lowestReceived() rocev2.PSN {
	m := g.agg.acked
	if g.policy.quorum != 0 {
		for i := range g.acks {
			if b := &g.acks[i]; b.flags&isReceiver != 0 && b.acked.Less(m) {
				m = b.acked
			}
		}
	}
	return m
}

// Positions writes the present positions of a group's members into p, whose Members it
// reuses, and returns their number. It reports whether there are any to store: the group
// exists, is to be stored, and is neither resuming nor failed.
func (v Group) Positions(p *Positions) (number uint32, ok bool) {
	return v.g.positions(p, false)
}

// LastPositions is Positions of a switch that serves no packet any more. A source that is at
// rest, with a message's end acknowledged by all receivers, is none in p: after the restart
// another member may begin at once. There are none if no turn has begun since the group was
// put.
func (v Group) LastPositions(p *Positions) (ok bool) {
	number, ok := v.g.positions(p, true)
	return ok && number != 0
}

func (g *group) positions(p *Positions, last bool) (number uint32, ok bool) {
	*p = Positions{Members: p.Members[:0]}
	if g == nil || !g.policy.stored || g.is(failed) || g.is(learning) {
		return 0, false
	}
	next := g.lowestReceived().Next()
	p.HasSource = g.src.member != none && !(last && g.tree() == nil && g.isQuiescent())
	if p.HasSource {
		p.Source = MemberID(g.src.member)
	}
	for i := range g.members {
		m := &g.members[i]
		at := Position{Send: m.sqPSN, Receive: m.ePSN}
		switch b := g.ackStateOf(int(m.leg)); {
		case !m.live:
		case int32(i) == g.src.member: // it has not received anything that was not verified
			at.Known, at.Send = true, next
		case g.tree() != nil && !g.legs[m.leg].connected():
			at.Known, at.Joining = !g.tree().isUnknown(MemberID(i)), g.legs[m.leg].joining // what it receives is known where it is
		case b.flags&isReceiver != 0 && !g.unproven(int(m.leg)):
			at.Known, at.Receive = true, (next+rocev2.PSN(b.delta))&rocev2.PSNMask
		default: // perhaps after turns in which it had a part, so its registered PSNs are of no use
			at.Known, at.Joining = true, p.HasSource
		}
		at.FullHistory = at.Known && g.ackedCountOf(i) == maxBehind
		p.Members = append(p.Members, at)
	}
	return g.storage.number, true
}

// ackedCountOf returns how many PSNs before its position were acknowledged to member i, at most maxBehind.
func (g *group) ackedCountOf(i int) int32 {
	if int32(i) == g.src.member {
		return g.src.ackedCount
	}
	return g.members[i].ackedCount
}

// PositionsStored tells the switch that the positions p of a group, with that number, are
// durable. Positions of before the last turn or join have no effect.
func (s *Switch) PositionsStored(now time.Duration, id GroupID, number uint32, p *Positions, out *Output) {
	out.reset()
	g := s.group(id)
	if g == nil || !g.policy.stored || g.is(failed) || g.is(learning) || !p.HasSource || int32(p.Source) != g.src.member || number != g.storage.number {
		return
	}
	g.setNxt(g.fwd.nxt, p.Members[p.Source].Send.Add(maxUnstored))
	if g.gates&(awaitsFile|unstored) == awaitsFile {
		g.release(awaitsFile)
		if g.activity == nil {
			g.activate(now)
		}
		g.evaluate(out)
		g.noteEvictions(now, out.Events, out)
		s.rearm(g)
	}
}
