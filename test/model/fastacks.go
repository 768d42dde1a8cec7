// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/model/notation"
)

// ACKs that the fast path counts (R113). What is atomic there is a step here:
//
//   - A program takes an ACK: it reads the group's word, compares, and raises the word of the leg.
//   - It reads the words of the legs, one after the other.
//   - It moves the limit by the lowest of them, if nobody has changed it since the program has begun (R114).
//   - It raises the word of the ACK to the source, likewise.
//   - The ACK leaves.
//   - The driver closes a word, and has what it was; opens all words; reads all words; tells the switch
//     of what it has read; has the programs move the limit, or no more; tells the switch of what all have and it
//     was not told of.
//
// Two CPUs take ACKs at once. A program that finds a word closed, or of tables that have changed
// since, gives the ACK to the driver, although it has raised its leg's word; so it does if the
// limit is close, to have the driver move it.

// word is the word of a leg, or that of the ACK to the source.
type word struct {
	leg   bool // true: there is one
	open  bool
	acked rocev2.PSN
	at    time.Duration // time of the last ACK; 0: none has come since the switch was told

	read rocev2.PSN // what the driver has read
	told rocev2.PSN // what the switch was told
}

// scan is a program that has taken an ACK.
type scan struct {
	on       bool
	at       uint8 // the word to read next
	found    bool  // lowest is set
	answered bool  // the word of the ACK is raised: the ACK is to leave
	link     uint8
	tables   uint8 // the tables that the program goes by
	lowest   rocev2.PSN
	moves    bool       // the programs moved the limit when this one began
	limit    rocev2.PSN // the limit then
	p        packet
}

// maxScans is the number of CPUs that take ACKs.
const maxScans = 2

// acks is the part of a program that counts ACKs.
type acks struct {
	counting bool   // the driver has opened the words, or is about to
	moved    bool   // the programs have moved the limit, or do, since the last report of all
	tables   uint8  // counts the changes of the tables
	words    []word // words by leg
	sent     word
	scans    [maxScans]scan
	granted  rocev2.PSN // the first PSN of the grant
	before   rocev2.MSN // messages before it
}

// scanning reports whether a program has taken an ACK, and has not ended.
func (a *acks) scanning() bool { return a.scans[0].on || a.scans[1].on }

// untold reports whether the switch has something to be told.
func (a *acks) untold() bool {
	return a.counting && slices.ContainsFunc(a.words, func(x word) bool { return x.leg && x.open && x.acked != x.told })
}

// ackLeg returns the leg whose ACK p a program takes that comes by link l, or -1.
func (w *World) ackLeg(sw, l int, p *packet) int {
	f, r := &w.switches[sw].fast, &w.switches[sw]
	from := int(w.links[l].from)
	if !w.cfg.ACKs || !f.on || !p.feedback || rank(p.syndrome) != 0 && !w.cfg.faultyACKs.nakCounts || from >= len(w.hosts) || w.links[l].nbr != 0 || p.psn == rocev2.PSNMask && p.msn == 0 ||
		f.acks.scans[0].on && f.acks.scans[1].on {
		return -1
	}
	leg := int(r.leg[from])
	if leg >= len(f.gates) || leg >= len(f.acks.words) {
		return -1
	}
	x := &f.acks.words[leg]
	if psn := f.sourcePSN(leg, p); !x.leg || !x.open || !x.acked.Less(psn) || !psn.Less(f.hi) {
		return -1
	}
	return leg
}

// sourcePSN returns the PSN of feedback of a leg in the numbering of the source.
func (f *program) sourcePSN(leg int, p *packet) rocev2.PSN {
	return (p.psn - rocev2.PSN(f.gates[leg].delta)) & rocev2.PSNMask
}

// takeACK has a program take ACK p of a leg.
func (w *World) takeACK(sw, l, leg int, p packet) {
	f := &w.switches[sw].fast
	x, s := &f.acks.words[leg], &f.acks.scans[0]
	x.acked, x.at = f.sourcePSN(leg, &p), w.now
	if s.on {
		s = &f.acks.scans[1]
	}
	*s = scan{on: true, link: uint8(l), p: p, tables: f.acks.tables, moves: f.moves}
	if s.moves {
		s.limit = f.limit
	}
	if w.cfg.faultyACKs.own {
		s.lowest, s.found, s.at = x.acked, true, uint8(len(f.acks.words))
	}
}

// isTight reports whether the source might fill the ring if it had an ACK of psn.
func (w *World) isTight(f *program, psn rocev2.PSN) bool {
	return int(f.limit.Sub(psn)) < w.cfg.FastPath/2
}

// scanStep has a program that has taken an ACK do its next step.
func (w *World) scanStep(sw, k int) {
	f := &w.switches[sw].fast
	s := &f.acks.scans[k]
	if s.answered {
		s.on = false
		w.answer(sw, s.lowest)
		return
	}
	for int(s.at) < len(f.acks.words) {
		x := &f.acks.words[s.at]
		if s.at++; !x.leg {
			continue
		}
		if !w.cfg.faultyACKs.closed && (!x.open || s.tables != f.acks.tables) {
			w.leaveACK(f, s)
			return
		}
		if !s.found || x.acked.Less(s.lowest) {
			s.lowest, s.found = x.acked, true
		}
		return
	}
	x := &f.acks.sent
	switch open := x.open && s.tables == f.acks.tables; {
	case open && x.acked.Less(s.lowest) && !s.lowest.Less(f.acks.granted) && w.moveLimit(f, s):
		return
	}
	switch {
	case !w.cfg.faultyACKs.closed && (!x.open || s.tables != f.acks.tables), s.lowest.Less(f.acks.granted): // or its slot is not in the ring
		w.leaveACK(f, s)
	case x.acked.Less(s.lowest) && w.isTight(f, s.lowest):
		w.leaveACK(f, s)
	case x.acked.Less(s.lowest):
		x.acked, s.answered = s.lowest, true
	default:
		s.on = false
	}
}

// leaveACK has a program give the ACK that it has taken to the driver.
func (w *World) leaveACK(f *program, s *scan) {
	s.on = false
	f.todo = append(f.todo, w.reports(f)...)
	f.todo = append(f.todo, chore{kind: giveInput, link: s.link, p: s.p})
}

// answer sends the source the ACK of the fast path.
func (w *World) answer(sw int, psn rocev2.PSN) {
	r := &w.switches[sw]
	f := &r.fast
	src := int(f.source)
	st := &w.streams[src]
	member := slices.Index(r.host, src)
	fb := mcast.Feedback{To: mcast.MemberID(member), PSN: psn, Syndrome: rocev2.SyndromeACK}
	fb.MSN = f.acks.before.Add(int32(st.messagesIn(w.count(src, psn)) - st.messagesIn(w.count(src, f.acks.granted)-1)))
	w.swOut.Events = w.swOut.Events[:0]
	w.snapshot(sw, &w.before)
	if !w.endToEnd && member >= 0 {
		w.checkPromise(sw, &fb)
	}
	w.send(w.linkOf(sw, r.leg[src]), packet{feedback: true, source: uint8(src), psn: psn, syndrome: rocev2.SyndromeACK})
}

// reports are what the driver does before it calls the switch: words are read before what was
// forwarded is reported, since an ACK is of a packet that was forwarded before.
func (w *World) reports(f *program) []chore {
	switch {
	case !f.acks.counting:
		return []chore{{kind: reportTaken}}
	case w.cfg.faultyACKs.late:
		return []chore{{kind: reportTaken}, {kind: readWords}, {kind: tellWords}}
	case f.mayMove() && !w.cfg.faultyACKs.moving:
		return []chore{{kind: closeLimit}, {kind: readWords}, {kind: reportTaken}, {kind: tellWords}}
	}
	return []chore{{kind: readWords}, {kind: reportTaken}, {kind: tellWords}}
}

// closes are what the driver does to have no more ACKs counted.
func (f *program) closes() (cs []chore) {
	f.acks.counting = false
	f.todo = slices.DeleteFunc(f.todo, func(c chore) bool { return c.kind == closeWord || c.kind == openWords || c.kind == openLimit })
	if f.acks.moved {
		cs = append(cs, chore{kind: closeLimit})
	}
	if f.acks.sent.open {
		cs = append(cs, chore{kind: closeWord, leg: uint8(len(f.acks.words))})
	}
	for l := range f.acks.words {
		if f.acks.words[l].open {
			cs = append(cs, chore{kind: closeWord, leg: uint8(l)})
		}
	}
	return cs
}

// takesBack are what the driver does to take the fast path back.
func (w *World) takesBack(f *program) []chore {
	cs := []chore{{kind: takeBack}}
	if !w.cfg.faultyACKs.open {
		cs = append(cs, f.closes()...)
	}
	if cs = append(cs, chore{kind: reportTaken}); w.cfg.ACKs {
		cs = append(cs, chore{kind: tellWords})
	}
	return append(cs, chore{kind: callRevoked})
}

// readWords reads all words.
func (f *program) readWords() {
	for l := range f.acks.words {
		f.acks.words[l].read = f.acks.words[l].acked
	}
	f.acks.sent.read = f.acks.sent.acked
}

// closeWord closes a word, and reads it.
func (f *program) closeWord(leg int) {
	x := &f.acks.sent
	if leg < len(f.acks.words) {
		x = &f.acks.words[leg]
	}
	x.open, x.read = false, x.acked
}

// openWords opens the words, at what the switch has.
func (w *World) openWords(sw int) {
	f := &w.switches[sw].fast
	w.snapshot(sw, &w.after)
	st := &w.after
	for l := range f.acks.words {
		x := &f.acks.words[l]
		if *x = (word{leg: x.leg, open: x.leg}); !x.leg {
			continue
		}
		for i := range st.Members {
			if m := &st.Members[i]; m.Live && m.Leg == mcast.LegID(l) {
				x.acked, x.read, x.told = m.Acked, m.Acked, m.Acked
			}
		}
	}
	f.acks.sent = word{open: true, acked: st.Acked, read: st.Acked, told: st.Acked}
}

// tellWords tells the switch what was read.
func (w *World) tellWords(sw int) {
	r := &w.switches[sw]
	f := &r.fast
	var legs []mcast.LegACK
	for l := range f.acks.words {
		x := &f.acks.words[l]
		if !x.leg || x.read == x.told {
			continue
		}
		legs = append(legs, mcast.LegACK{Leg: mcast.LegID(l), Acked: x.read, Count: 1, At: x.at})
		if x.told = x.read; x.acked == x.read {
			x.at = 0
		}
	}
	if len(legs) == 0 {
		return
	}
	if w.recorder != nil {
		w.stepOp = "acked"
		for _, a := range legs {
			w.stepOp += fmt.Sprintf(" %s=%s", w.legName(sw, a.Leg), notation.PSN(a.Acked))
		}
		if f.acks.sent.read != f.acks.sent.told {
			w.stepOp += " sent=" + notation.PSN(f.acks.sent.read)
		}
	}
	sent := mcast.SentACK{PSN: f.acks.sent.read}
	f.acks.sent.told = f.acks.sent.read
	w.callSwitch(sw, func(r *switchState) { r.dev.InputAcked(w.now, 0, legs, sent, &w.swOut) })
	w.stepOp = ""
	if w.swOut.Drop == mcast.FeedbackAhead {
		w.fault(sw, "the switch is told of ACKs before what they acknowledge")
	}
}

// setWords gives the legs that the tables have their words. The fast path is not granted.
func (w *World) setWords(sw int) {
	f := &w.switches[sw].fast
	var t mcast.OffloadTable
	for l := range f.acks.words {
		f.acks.words[l] = word{}
	}
	w.switches[sw].dev.Group(0).OffloadTable(&t)
	for _, l := range t.Legs {
		f.acks.words[l.Leg].leg = true
	}
	f.acks.sent = word{}
}

// judgeACKs opens or closes the words, as the switch says whether its ACKs may be counted.
func (w *World) judgeACKs(sw int) {
	f := &w.switches[sw].fast
	if !w.cfg.ACKs {
		return
	}
	legs := 0
	for l := range f.acks.words {
		if f.acks.words[l].leg {
			legs++
		}
	}
	may := f.on && w.switches[sw].dev.Group(0).OffloadACKs(legs) == "" && !slices.ContainsFunc(f.todo, func(c chore) bool { return c.kind == takeBack })
	switch {
	case may && !f.acks.counting:
		f.acks.counting = true
		f.todo = append(f.todo, chore{kind: openWords})
		w.haveLimitMoved(f)
	case may && !f.acks.moved:
		w.haveLimitMoved(f)
	case !may && f.acks.counting && f.on:
		cs := f.closes()
		f.todo = append(append(f.todo, cs...), chore{kind: reportTaken}, chore{kind: tellWords})
	}
}

// faultyACKs are mistakes in the counting of ACKs.
type faultyACKs struct {
	own       bool // true: the answer is what the program's own leg has
	nakCounts bool // true: a NAK is taken for an ACK
	closed    bool // true: a closed word counts, and one of other tables
	open      bool // true: the words stay open when the fast path is taken back
	late      bool // true: the words are read after the group's
	moving    bool // true: the limit is not closed before the switch is called
	behind    bool // true: what has left the ring is reported
}
