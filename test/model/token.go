// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/binary"
	"slices"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/mcast/token"
)

// The reports of switches to each other about who may send. With Config.Reports they are
// packets on the links; else they arrive at once, before anything else happens.

// arrival is a report that has come to a switch.
type arrival struct {
	sw  int
	nbr mcast.Neighbor // the sender, as the switch numbers it
	msg token.Message
}

// meet lets the switches begin their sessions.
func (w *World) meet() {
	for l := range w.links {
		w.begins(l)
	}
	w.hasten()
}

// meetAgain begins a new session of switch sw with each of its neighbours, after a restart. A
// report of the last one is of no effect any more.
func (w *World) meetAgain(sw int) {
	for l := range w.links {
		k := &w.links[l]
		if !w.isTrunk(k) || int(k.to)-len(w.hosts) != sw && int(k.from)-len(w.hosts) != sw {
			continue
		}
		k.q = slices.DeleteFunc(k.q, func(p packet) bool { return p.report != nil })
		k.session = uint8(w.cfg.Restart - w.left.Restart)
		w.begins(l)
	}
}

func (w *World) isTrunk(l *link) bool { return int(min(l.from, l.to)) >= len(w.hosts) }

// session tells switch sw of the present session with a neighbour.
func (w *World) session(sw int, n mcast.Neighbor, number uint64) {
	w.snapshot(sw, &w.before)
	if err := w.switches[sw].dev.SetSession(w.now, 0, n, number, &w.swOut); err != nil {
		w.fault(sw, "%v", err)
		return
	}
	w.snapshot(sw, &w.after)
	w.recordSession, w.sessionNumber = n, number
	w.forwarded(sw, nil)
	w.recordSession = 0
}

// report sends a report of switch sw.
func (w *World) report(sw int, r *mcast.Report) {
	l := w.switches[sw].trunks[r.Neighbor-1]
	if w.cfg.Reports {
		msg := r.Message
		w.send(l, packet{report: &msg})
		return
	}
	k := &w.links[l]
	w.arrivals = append(w.arrivals, arrival{int(k.to) - len(w.hosts), k.nbr, r.Message})
}

// hasten delivers the reports that arrive at once, and those that answer them.
func (w *World) hasten() {
	for len(w.arrivals) > 0 && w.wrong == nil {
		a := w.arrivals[0]
		w.arrivals = w.arrivals[1:]
		w.reported(&a)
	}
	w.arrivals = w.arrivals[:0]
}

// reported gives a report to its switch.
func (w *World) reported(a *arrival) {
	w.recall(a.sw)
	w.snapshot(a.sw, &w.before)
	w.switches[a.sw].dev.InputReport(w.now, 0, a.nbr, &a.msg, &w.swOut)
	if w.swOut.Drop == mcast.ConflictingReport || w.swOut.Drop == mcast.LaterEpoch {
		w.fault(a.sw, "a report contradicts what was reported before: %+v", a.msg)
	}
	w.snapshot(a.sw, &w.after)
	w.arrived = a
	w.forwarded(a.sw, nil)
	w.arrived = nil
}

// checkToken checks that at most one member of the group may send, in each term: that is
// promise 1 of docs/TREES.md, seen from outside.
func (w *World) checkToken() {
	var st mcast.GroupStatus
	serving := map[token.Term]int{}
	for sw := range w.switches {
		if w.switches[sw].dev.Group(0).Snapshot(&st) && st.InTree && st.Token.Serving {
			if other, ok := serving[st.Token.Term]; ok {
				w.fault(sw, "TWO SOURCES: members of switches %d and %d may send in term %d", other, sw, st.Token.Term)
			}
			serving[st.Token.Term] = sw
		}
	}
}

// renumberReports lets the sequence numbers of reports begin anew where neither end nor a report
// on its way knows lower ones. Of a report that the receiver knows only its
// acknowledgement and whether it is answered count.
func (w *World) renumberReports() {
	for l := range w.links {
		k := &w.links[l]
		if !w.isTrunk(k) {
			continue
		}
		from, to := int(k.from)-len(w.hosts), int(k.to)-len(w.hosts)
		back := w.trunkTo(to, from)
		n := w.links[back].nbr // the receiver, as the sender numbers it
		if w.sessionAt(l) != w.sessionAt(back) {
			continue
		}
		sent, acked, _, up := w.switches[from].dev.Group(0).ReportNumbers(n)
		_, _, received, upThere := w.switches[to].dev.Group(0).ReportNumbers(k.nbr)
		if !up || !upThere {
			continue
		}
		least := min(acked, received)
		for i := range k.q {
			if m := k.q[i].report; m != nil {
				if m.Seq < received {
					m.Seq, m.Report, m.Position = received, token.Report{}, token.Position{}
				}
				least = min(least, m.Seq)
			}
		}
		for i := range w.links[back].q {
			if m := w.links[back].q[i].report; m != nil {
				m.Ack = max(m.Ack, acked)
				least = min(least, m.Ack)
			}
		}
		if least < 2 || sent == 0 {
			continue
		}
		off := least - 1
		w.switches[from].dev.RenumberReports(0, n, off, 0)
		w.switches[to].dev.RenumberReports(0, k.nbr, 0, off)
		for i := range k.q {
			if m := k.q[i].report; m != nil {
				m.Seq -= off
			}
		}
		for i := range w.links[back].q {
			if m := w.links[back].q[i].report; m != nil {
				m.Ack -= off
			}
		}
	}
}

// trunkTo returns the link from a switch to another one.
func (w *World) trunkTo(from, to int) int {
	for _, l := range w.switches[from].trunks {
		if int(w.links[l].to)-len(w.hosts) == to {
			return l
		}
	}
	panic("model: two switches without a link")
}

// encodeReport appends a report on its way.
func encodeReport(b []byte, m *token.Message) []byte {
	b = append(b, flag(m.Poll, 1)|flag(m.Joined, 2)|flag(m.Suspended, 4)|flag(m.Requests, 8)|flag(m.Doubtful, 16)|flag(m.Position.Ends, 32))
	at := &m.Position
	for _, v := range []uint64{m.Session, m.Seq, m.Ack, uint64(m.Term), uint64(m.Outdated), m.Crossings, uint64(m.Member), uint64(at.Source), uint64(at.PSN), uint64(at.Needed), uint64(at.Layout), uint64(at.Next)} {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func decodeReport(b []byte) (*token.Message, []byte) {
	f := b[0]
	b = b[1:]
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		b = b[n:]
		return v
	}
	m := &token.Message{Group: groupIP, Session: next(), Seq: next(), Ack: next(), Poll: f&1 != 0}
	m.Report = token.Report{
		Term: token.Term(next()), Outdated: token.Term(next()), Crossings: next(), Member: token.Member(next()),
		Joined: f&2 != 0, Suspended: f&4 != 0, Requests: f&8 != 0, Doubtful: f&16 != 0,
	}
	m.Position = token.Position{Source: token.Member(next()), PSN: uint32(next()), Ends: f&32 != 0, Needed: token.Member(next()), Layout: uint32(next()), Next: uint32(next())}
	return m, b
}
