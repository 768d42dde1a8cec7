// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Gates (R98). A leg that has lost something is shut at once, gets what it lacks from the
// worker, and its gate is opened when that has left. If the programs have passed that PSN
// meanwhile, or a copy was not made, the gate stays where it is: the leg is given back to
// the core, which sends what is missing and opens it again. So it is when the group is taken
// back while a gate is behind.

// fastGate is the gate of a leg, as the worker has set it.
type fastGate struct {
	open   bool
	delta  rocev2.PSN // the number added to the source's PSNs
	copies uint64     // the copies that the gate had let pass when it was opened
	next   rocev2.PSN // the next PSN at the last look
	behind bool       // true: it had not let everything pass at the last look
}

// fastOpen is a gate to be opened from next on.
type fastOpen struct {
	group *fastGroup
	leg   int // index in the group's spec
	next  rocev2.PSN
	delta rocev2.PSN
}

// fastLeg is a leg of a group.
type fastLeg struct {
	group mcast.GroupID
	leg   mcast.LegID
}

// indexOf returns the index of a leg in the maps, or -1.
func (f *fastGroup) indexOf(l mcast.LegID) int {
	if int(l) >= len(f.legs) {
		return -1
	}
	return f.legs[l]
}

// openGate opens a gate. Everything before next has been sent to the leg.
func (f *fastGroup) openGate(k int, next, delta rocev2.PSN) {
	f.ring.SetPSNDelta(k, delta)
	f.gates[k] = fastGate{open: true, delta: delta, copies: f.ring.Gate(k).Copies, next: next}
	f.ring.Open(k, next)
}

// shutGate shuts a gate, and forgets that it was to be opened.
func (w *worker) shutGate(f *fastGroup, k int) {
	f.ring.Shut(k)
	f.gates[k].open = false
	w.fast.opens = slices.DeleteFunc(w.fast.opens, func(o fastOpen) bool { return o.group == f && o.leg == k })
}

// openFastGates opens the gates of legs whose ports have sent everything.
func (w *worker) openFastGates() {
	for i := 0; i < len(w.fast.opens); {
		o := w.fast.opens[i]
		if !w.hasSent(w.ports[o.group.spec.Legs[o.leg].Port]) {
			i++
			continue
		}
		w.fast.opens = slices.Delete(w.fast.opens, i, i+1)
		w.openOrGiveBack(&o) // a group that is taken back has its other gates taken from the list
	}
}

// openOrGiveBack opens a gate, unless the programs have passed its PSN already.
func (w *worker) openOrGiveBack(o *fastOpen) {
	f := o.group
	if hi := f.ring.State().Hi; hi == o.next {
		f.openGate(o.leg, o.next, o.delta)
		return
	}
	w.reportGroup(f)
	w.giveBackOrOpen(f, o.leg, o.next, o.delta, w.now)
}

// giveBackOrOpen gives a leg back that the programs have sent nothing from next on. If they have
// forwarded nothing since, or the core cannot send it, its gate is opened. What was forwarded is
// reported.
func (w *worker) giveBackOrOpen(f *fastGroup, k int, next, delta rocev2.PSN, until time.Duration) {
	if next != f.reported && w.giveBack(f, k, next, delta, until) {
		return
	}
	if f.step == fastGranted {
		f.openGate(k, f.reported, delta)
	}
}

// giveBackMissed gives those legs of a group back that have not been sent all that was
// reported: the group is about to be the core's, and nobody looks at gates then.
func (w *worker) giveBackMissed(f *fastGroup) {
	w.fast.opens = slices.DeleteFunc(w.fast.opens, func(o fastOpen) bool {
		if o.group == f && o.next != f.reported {
			w.giveBack(f, o.leg, o.next, o.delta, w.now)
		}
		return o.group == f
	})
	spins := maxCopySpins
	for k := range f.gates {
		g := &f.gates[k]
		if !g.open {
			continue
		}
		for ; f.ring.Gate(k).Next != f.reported && spins > 0; spins-- { // another processor is making the copies
		}
		if x := f.ring.Shut(k); x.Next != f.reported {
			w.noteSkip(f, k, x)
			w.giveBack(f, k, x.Next, g.delta, w.readClock()+fastDrain)
		}
		g.open = false
	}
}

// maxCopySpins bounds the wait for copies that are being made, which takes some microseconds.
// Copies that are not made then never will be.
const maxCopySpins = 2000

// noteSkip notes that the gate of leg k was open, and has let nothing pass since.
func (w *worker) noteSkip(f *fastGroup, k int, is fastpath.Gate) {
	if is.Next != f.reported && is.Copies == f.gates[k].copies {
		w.fast.shared.targets.skipped(f.spec.Legs[k].Port)
	}
}

// giveBack gives a leg back to the core, since the programs do not send it next. Everything
// that they have forwarded is reported, and its gate is shut. False: what they have not sent
// is lost as on a link.
func (w *worker) giveBack(f *fastGroup, k int, next, delta rocev2.PSN, until time.Duration) bool {
	c := mcast.Copy{Group: f.id, Leg: f.at[k], PSN: (next + delta) & rocev2.PSNMask}
	f.givenBack++
	return w.core.Requeue(&c, until)
}

// lookAtGates finds gates that do not follow. It returns true if all that are open have let everything pass.
func (w *worker) lookAtGates(f *fastGroup) (settled bool) {
	hi := f.ring.State().Hi
	settled = true
	for k := range f.gates {
		g := &f.gates[k]
		if !g.open {
			continue
		}
		x := f.ring.Gate(k)
		stuck := g.behind && x.Next == g.next
		g.next, g.behind = x.Next, x.Next != hi
		settled = settled && !g.behind
		if !stuck {
			continue
		}
		w.reopenGate(f, k)
		if f.step != fastGranted {
			return false
		}
	}
	return settled
}

// reopenGate shuts a gate that has let something not pass, and has the leg sent that.
func (w *worker) reopenGate(f *fastGroup, k int) {
	g := f.gates[k]
	w.shutGate(f, k)
	x := f.ring.Gate(k) // a copy may have passed in the last moment
	until := w.now
	if x.Copies != g.copies {
		until = w.readClock() + fastDrain
	}
	w.reportGroup(f)
	w.noteSkip(f, k, x)
	w.giveBackOrOpen(f, k, x.Next, g.delta, until)
}

// hasSent reports whether the kernel has everything that was staged for p until now.
func (w *worker) hasSent(p *port) bool {
	if p.vanished || p.down {
		return true
	}
	if x := p.remoteTX; x != nil {
		return len(p.staged) == 0 && p.queue.len() == 0 && x.sentBytes.Load() == x.handedBytes
	}
	return len(p.staged) == 0 && p.queue.len() == 0 && p.ring.kickAt == 0
}
