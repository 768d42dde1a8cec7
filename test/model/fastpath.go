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

// The fast path (R97, R98): a program that forwards beside the switch, and its driver. What
// is atomic there is a step here, so that the steps of both interleave:
//
//   - The program takes a packet: it reads the group's word, compares, and swaps it. A
//     failed swap is a packet that arrives after the word has changed.
//   - It stores the packet in the ring.
//   - It sends the copies, to each leg whose gate has that PSN, and advances the gate. The
//     gates are words of their own, and no property is about two of them, so one step does
//     all legs.
//   - The driver reports what was taken, gives the switch a packet, takes the word back,
//     opens or shuts a gate, or stores the word: one step each.
//
// The program runs on one CPU: the next packet is taken when the last one is in the ring, and
// copies leave in order. No time passes while a copy has not left: it takes less than the
// drain. The limit only grows while the word is set, so that it is read with the word.

// drainTime is mcast.FastPathSpec.Drain.
const drainTime = 10 * time.Microsecond

// taken is a packet that the program has taken.
type taken struct {
	packet
	link                   uint8
	stored, sent, reported bool
}

// gate is the word of a leg: the PSN that passes next.
type gate struct {
	open  bool
	next  rocev2.PSN
	delta uint32
}

// program is the fast path of a switch, and its driver.
type program struct {
	on     bool // the group's word is set
	source uint8
	hi     rocev2.PSN
	limit  rocev2.PSN
	moves  bool // the programs move the limit (R114)
	gates  []gate
	taken  []taken
	queue  []taken // data that the program has not taken, for the driver: only packet and link
	todo   []chore // chores of the driver, in order
	acks   acks
}

// newProgram returns the fast path of a switch with that many legs.
func newProgram(legs int) program {
	return program{gates: make([]gate, legs), acks: acks{words: make([]word, legs)}}
}

type choreKind uint8

const (
	reportTaken choreKind = iota
	giveInput
	callAdvance
	takeBack
	callRevoked
	openGate
	shutGate
	askOffload
	storeWord
	readWords
	tellWords
	closeWord
	openWords
	closeLimit
	openLimit
	tellCovered
)

type chore struct {
	kind choreKind
	link uint8      // the link of giveInput
	p    packet     // the packet of giveInput
	leg  uint8      // the leg of openGate, shutGate, closeWord
	next rocev2.PSN // the next PSN of openGate
	by   uint32     // the delta of openGate
}

// storing reports whether the program has taken a packet that is not in the ring yet.
func (f *program) storing() bool { return len(f.taken) > 0 && !f.taken[len(f.taken)-1].stored }

// unsent returns the first packet of which the copies have not left.
func (f *program) unsent() *taken {
	for i := range f.taken {
		if !f.taken[i].sent {
			return &f.taken[i]
		}
	}
	return nil
}

// unreported reports whether the driver has something to report.
func (f *program) unreported() bool {
	return slices.ContainsFunc(f.taken, func(t taken) bool { return !t.reported })
}

// stuck returns a leg whose gate was opened too late, or -1.
func (f *program) stuck() int {
	if !f.on || f.unsent() != nil || f.unreported() {
		return -1
	}
	return slices.IndexFunc(f.gates, func(g gate) bool { return g.open && g.next != f.hi })
}

func (f *program) busy() bool {
	return len(f.todo) > 0 || len(f.queue) > 0 || f.unsent() != nil || f.stuck() >= 0 || f.acks.scanning()
}

// mayArrive reports whether packet p on link l can be delivered now.
func (w *World) mayArrive(l int, p *packet) bool {
	to := int(w.links[l].to) - len(w.hosts)
	if w.cfg.FastPath == 0 || to < 0 {
		return true
	}
	f := &w.switches[to].fast
	if p.feedback || p.report != nil || p.probe {
		return len(f.todo) == 0 || w.ackLeg(to, l, p) >= 0
	}
	return !f.storing()
}

// Arguments of the action fast beside the switch: which step the program does.
const (
	storeStep = 0
	sendStep  = 4
	scanStep  = 8 // the step of the first CPU; that of the second one is 4 more
)

// fastActions appends the steps of the program and the driver of switch sw.
func (w *World) fastActions(as []action, sw int) []action {
	f := &w.switches[sw].fast
	if f.storing() {
		as = append(as, fast|action(sw)|storeStep)
	}
	if t := f.unsent(); t != nil && t.stored {
		as = append(as, fast|action(sw)|sendStep)
	}
	for k := range f.acks.scans {
		if f.acks.scans[k].on {
			as = append(as, fast|action(sw)|action(scanStep+4*k))
		}
	}
	if w.driverCan(sw) {
		as = append(as, work|action(sw))
	}
	return as
}

// idleStep is the argument of the action work beside the switch: the fast path is taken back
// although the switch has not asked for it.
const idleStep = 4

// idleActions appends that the driver of switch sw finds its fast path idle, at any moment:
// that includes the moments at which data comes again.
func (w *World) idleActions(as []action, sw int) []action {
	if f := &w.switches[sw].fast; w.left.Idle > 0 && f.on && len(f.todo) == 0 {
		as = append(as, work|action(sw)|idleStep)
	}
	return as
}

// rest has the driver take back an idle fast path.
func (w *World) rest(sw int) {
	w.left.Idle--
	f := &w.switches[sw].fast
	if w.cfg.idleChores == nil {
		cs := w.takesBack(f)
		f.todo = append(f.todo, cs...)
		return
	}
	for _, k := range w.cfg.idleChores {
		f.todo = append(f.todo, chore{kind: k})
	}
}

// driverCan reports whether the driver has a step.
func (w *World) driverCan(sw int) bool {
	f := &w.switches[sw].fast
	if len(f.todo) == 0 {
		return len(f.queue) > 0 || f.unreported() && !f.storing() || f.stuck() >= 0 || f.acks.untold()
	}
	return f.todo[0].kind != reportTaken || !f.storing()
}

// fastBusy reports whether a program or a driver is at work: no time passes.
func (w *World) fastBusy() bool {
	return w.cfg.FastPath > 0 && slices.ContainsFunc(w.switches, func(r switchState) bool { return r.fast.busy() })
}

// arriveFast is the program: it takes a packet of the source, or leaves it to the driver.
func (w *World) arriveFast(sw, l int, p packet) {
	f := &w.switches[sw].fast
	if p.feedback || p.report != nil {
		if leg := w.ackLeg(sw, l, &p); leg >= 0 {
			w.takeACK(sw, l, leg, p)
			return
		}
		f.todo = append(append(f.todo, w.reports(f)...), chore{kind: giveInput, link: uint8(l), p: p})
		return
	}
	t := taken{packet: p, link: uint8(l)}
	if f.on && p.source == f.source && p.psn == f.hi && f.hi.Less(f.limit) {
		f.hi = f.hi.Next()
		f.taken = append(f.taken, t)
		return
	}
	f.queue = append(f.queue, t)
}

// fastStep does a step of the program.
func (w *World) fastStep(sw, step int) {
	f := &w.switches[sw].fast
	switch {
	case step == storeStep:
		f.taken[len(f.taken)-1].stored = true
		return
	case step >= scanStep:
		w.scanStep(sw, (step-scanStep)/4)
		return
	}
	t := f.unsent()
	t.sent = true
	for l := range f.gates {
		if g := &f.gates[l]; g.open && g.next == t.psn {
			g.next = g.next.Next()
			w.copyFast(sw, mcast.LegID(l), t)
		}
	}
	f.forget()
}

// forget drops packets that are sent and reported.
func (f *program) forget() {
	f.taken = slices.DeleteFunc(f.taken, func(t taken) bool { return t.sent && t.reported })
}

// copyFast sends a copy of the program, and checks that the leg has been sent what comes
// before.
func (w *World) copyFast(sw int, l mcast.LegID, t *taken) {
	r := &w.switches[sw]
	x, p := &r.legs[l], t.packet
	for k := x.top; k < p.index && !w.endToEnd; k++ {
		if r.keeps(int(p.source), int(k), int(k)+1) {
			w.fault(sw, "the fast path sends packet %d to leg %d, which was not sent packet %d", p.index, l, k)
		}
	}
	x.top = max(x.top, p.index+1)
	w.checkGate(sw, l)
	to := r.at[l]
	if r.near[to] == 0 {
		p.gen = w.hosts[to].gen
		p.ackReq = p.ackReq || w.cfg.AckEvery != 0 && uint32(p.psn)%w.cfg.AckEvery == w.cfg.AckEvery-1
	}
	p.psn = (p.psn + rocev2.PSN(r.fast.gates[l].delta)) & rocev2.PSNMask
	w.send(r.down[to], p)
}

// checkGate checks that a gate that lets a packet pass leads to a leg that is in sync, or
// that it is about to be shut.
func (w *World) checkGate(sw int, l mcast.LegID) {
	r := &w.switches[sw]
	if !r.fast.on || slices.ContainsFunc(r.fast.todo, func(c chore) bool { return c.kind == shutGate && c.leg == uint8(l) || c.kind == takeBack }) {
		return
	}
	w.snapshot(sw, &w.after)
	for i := range w.after.Members {
		if m := &w.after.Members[i]; m.Leg == l && m.Recovering && !w.endToEnd {
			w.fault(sw, "the fast path sends leg %d a packet, and the leg is recovering", l)
		}
	}
}

// work does a step of the driver of switch sw.
func (w *World) work(sw int) {
	f := &w.switches[sw].fast
	if len(f.todo) == 0 {
		switch l := f.stuck(); {
		case len(f.queue) > 0:
			t := f.queue[0]
			f.queue = slices.Delete(f.queue, 0, 1)
			f.todo = append(append(f.todo, w.reports(f)...), chore{kind: giveInput, link: t.link, p: t.packet})
		case l >= 0:
			w.giveBack(sw, l)
		case f.acks.moved:
			f.todo = append(f.todo, chore{kind: readWords}, chore{kind: tellCovered})
		case f.acks.counting:
			f.todo = append(f.todo, w.reports(f)...)
		default:
			w.report1(sw)
		}
		return
	}
	c := f.todo[0]
	f.todo = slices.Delete(f.todo, 0, 1)
	switch c.kind {
	case reportTaken:
		w.report1(sw)
	case giveInput:
		w.toSwitch(sw, int(c.link), c.p)
		if w.swOut.NeedRevoke {
			cs := append(w.takesBack(f), c)
			f.todo = slices.Insert(f.todo, 0, cs...)
		}
	case callAdvance:
		w.advance(sw)
	case takeBack:
		f.on = false
	case callRevoked:
		w.revoked(sw)
	case openGate:
		f.gates[c.leg] = gate{true, c.next, c.by}
	case shutGate:
		f.gates[c.leg].open = false
	case askOffload:
		w.askOffload(sw)
	case storeWord:
		f.on = true
		w.judgeACKs(sw)
	case readWords:
		f.readWords()
	case tellWords:
		w.tellWords(sw)
	case closeWord:
		f.closeWord(int(c.leg))
	case openWords:
		w.openWords(sw)
	case closeLimit:
		f.moves = false
	case openLimit:
		f.moves, f.acks.moved = true, true
	case tellCovered:
		w.tellCovered(sw)
	}
	if k := len(f.todo); k > 0 && f.todo[0].kind == askOffload && k > 1 {
		f.todo = append(f.todo[1:k:k], f.todo[0]) // the driver asks last
	}
}

// callSwitch calls the device outside of a packet or a deadline.
func (w *World) callSwitch(sw int, call func(*switchState)) {
	w.snapshot(sw, &w.before)
	call(&w.switches[sw])
	w.snapshot(sw, &w.after)
	w.forwarded(sw, nil)
}

// report1 reports all that the program of switch sw has taken.
func (w *World) report1(sw int) {
	f := &w.switches[sw].fast
	w.coverAll(sw)
	for i := range f.taken {
		if t := &f.taken[i]; !t.reported {
			t.stored, t.reported = true, true // it waits for the ring
			w.checkRing(sw, t.psn, "a report is made")
			w.reportForwarded(sw, t)
		}
	}
	f.forget()
}

func (w *World) reportForwarded(sw int, t *taken) {
	r := &w.switches[sw]
	in := w.inputOf(sw, int(t.link), t.packet)
	in.Verified = true
	w.snapshot(sw, &w.before)
	r.dev.InputForwarded(w.now, 0, &in, &w.swOut)
	w.snapshot(sw, &w.after)
	if w.swOut.Drop == mcast.PSNOutOfRange {
		w.fault(sw, "a report of packet %d is not taken", t.index)
	}
	w.inForwarded = true
	w.forwarded(sw, &in)
	w.inForwarded = false
}

// giveBack gives back the packet that the gate of leg l has not let pass.
func (w *World) giveBack(sw, l int) {
	r := &w.switches[sw]
	g := &r.fast.gates[l]
	g.open = false
	c := mcast.Copy{Leg: mcast.LegID(l), PSN: (g.next + rocev2.PSN(g.delta)) & rocev2.PSNMask}
	ok := r.dev.Requeue(&c, w.now)
	if w.recorder != nil {
		w.recorder.clock(w, sw)
		fmt.Fprintf(&w.recorder.text[sw], "requeue leg=%s psn=%s\n----\nin the store: %v\n\n", w.legName(sw, c.Leg), notation.PSN(g.next), ok)
	}
	if !ok {
		g.open, g.next = true, r.fast.hi // lost as on a link
		w.corrupt(r.down[r.at[l]])
	}
}
