// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// obeyOrders carries out the orders of the last call of the core, whose copies have been
// staged. What has to wait until they have left is put off to the end of the batch.
//
// A group is asked for when data has come by the call: one that is idle is not granted.
func (w *worker) obeyOrders(data bool) {
	others := false
	for i := range w.out.Orders {
		if o := &w.out.Orders[i]; o.Kind != mcast.AskOffload {
			others = true
		} else if f := w.fast.of(o.Group); data && f != nil && !f.asked {
			f.asked = true
			w.fast.asked = append(w.fast.asked, f)
		}
	}
	if !others {
		return
	}
	refused := slices.Clone(w.fast.refused)        // a call of the core below overwrites them,
	for _, o := range slices.Clone(w.out.Orders) { // and the orders
		f := w.fast.of(o.Group)
		if o.Kind == mcast.AskOffload || f == nil || f.step != fastGranted { // it has been taken back since
			continue
		}
		switch k := f.indexOf(o.Leg); {
		case o.Kind == mcast.Revoke:
			w.takeBack(f, whyDecision)
		case k < 0:
			w.disturbFastGroup(f.id) // a leg that the maps do not have
		case o.Kind == mcast.ShutGate:
			w.shutGate(f, k)
		case !slices.Contains(refused, fastLeg{o.Group, o.Leg}):
			w.fast.opens = append(w.fast.opens, fastOpen{f, k, o.Next, rocev2.PSN(o.Delta)})
		}
	}
}

// takeBack takes a group back from the programs, and reports all that they have forwarded.
func (w *worker) takeBack(f *fastGroup, why Why) {
	if f.step != fastGranted {
		return
	}
	f.step = fastSet
	w.fast.on.remove(f)
	w.readClock()
	st := f.ring.Revoke()
	f.closeLimit()
	f.ring.CloseACKs()
	f.readACKs()
	w.reportUpTo(f, st.Hi)
	w.tellACKs(f)
	f.acks.counting = false
	f.full = f.full || st.Hi == f.limit
	w.fast.idle.add(f, f.ring.HasExcess())
	w.giveBackMissed(f)
	w.coreCalls++
	w.out.MaxResends = -1
	w.core.Revoked(max(w.readClock(), f.clock), f.id, &w.out)
	w.core.SetOffloadSlots(f.id, f.most)
	w.sendOwn()
	f.status.Revokes++
	if f.awaitsPrograms {
		f.unset()
	}
	f.damaged = Why{}
	w.leaveFast(f, why)
}

// takeBackFor takes group id back for p, which the core is given then. It may ask for the ICRC
// again; false: that is wrong.
func (w *worker) takeBackFor(id mcast.GroupID, f *rocev2.Frame, p *mcast.Packet) bool {
	resends := w.out.MaxResends
	w.takeBack(w.fast.of(id), whyInput)
	w.out.MaxResends = resends
	p.Verified = p.Verified || f.VerifyICRC()
	w.coreCalls++
	w.core.InputGroup(w.now, id, p, &w.out)
	return !w.out.NeedVerify
}

// grantAsked grants the groups that the core would offload. The batch has been sent.
func (w *worker) grantAsked() {
	if len(w.fast.asked) == 0 {
		return
	}
	asked := w.fast.asked
	w.fast.asked, w.fast.asking = w.fast.asking[:0], asked
	for _, f := range asked {
		f.asked = false
		if f.ended || w.now < f.tryAt || !w.isSet(f) {
			continue
		}
		f.tryAt = w.now + fastLook // or a port that is never empty would have all of the worker's time
		if w.empty(f.sourcePort); w.isSet(f) {
			w.grant(f)
		}
	}
}

// maxEmptyRounds bounds the batches of a port that are served one after the other.
const maxEmptyRounds = 16

// empty serves the packets that wait at a port until there are none, so that the next one of
// a source comes after the grant. Its window bounds their number, since it gets no feedback
// meanwhile.
func (w *worker) empty(pi int) {
	for range maxEmptyRounds {
		n := w.receivePort(pi)
		if w.workers != nil {
			n += w.drainHandoff()
		}
		if n == 0 {
			return
		}
		w.flush()
	}
}

// grant has the programs forward the packets of a group from now on.
func (w *worker) grant(f *fastGroup) {
	for k := range f.spec.Legs {
		if !w.hasSent(w.ports[f.spec.Legs[k].Port]) {
			return
		}
	}
	w.core.SetOffloadSlots(f.id, f.ring.Slots())
	if !w.core.Group(f.id).HasOffloadRoom() {
		w.core.SetOffloadSlots(f.id, f.most)
		f.full, f.tryAt = true, w.now+fastFullRetry
		w.leaveFast(f, whyFull)
		return
	}
	w.coreCalls++
	w.out.MaxResends = -1
	g, ok := w.core.Offload(w.readClock(), f.id, &w.out)
	if !ok {
		w.core.SetOffloadSlots(f.id, f.most)
		return
	}
	f.gates = slices.Grow(f.gates[:0], len(f.spec.Legs))[:len(f.spec.Legs)]
	for k := range f.gates {
		f.ring.Shut(k)
		f.gates[k] = fastGate{}
	}
	known := true
	for _, o := range w.out.Orders {
		if o.Kind != mcast.OpenGate {
			continue
		}
		k := f.indexOf(o.Leg)
		if known = known && k >= 0; k >= 0 {
			f.openGate(k, o.Next, rocev2.PSN(o.Delta))
		}
	}
	f.step, f.reported, f.clock, f.movedAt, f.lookAt = fastGranted, g.Nxt, w.now, w.now, w.now+fastReport
	f.gatesAt, f.gatesSeen, f.settled, f.used = w.now+fastLook, g.Nxt, false, true
	f.movedFrom, f.lookedAt, f.lookedHi, f.limit, f.ends = 0, w.now, g.Nxt, g.Limit, 0
	f.acks.first, f.acks.messages, f.acks.counting, f.acks.moves = g.Nxt, g.Messages, false, false
	w.fast.idle.remove(f)
	w.fast.on.add(f)
	w.touch(f)
	w.retained.maxBuffers = max(w.retained.maxBuffers, w.groups[f.id].maxBuffers) // of a repair from the ring
	f.status.Grants++
	f.status.Path, f.status.Since, f.status.Why, f.why = PathFast, w.now, Why{}, Why{}
	f.ring.Grant(g.Nxt, g.MidMessage, g.Limit)
	if !known {
		w.disturbFastGroup(f.id) // a leg that the maps do not have
	}
}

// leaveFast notes why a group is not on the fast path.
func (w *worker) leaveFast(f *fastGroup, why Why) {
	if f.why = why; f.status.Path != PathSlow {
		f.status.Since = w.now
	}
	f.status.Path, f.status.Why = PathSlow, why
}

// nextFast returns when the fast path has something to do, if nothing happens before.
func (w *worker) nextFast() time.Duration {
	switch {
	case len(w.fast.opens) > 0 || len(w.fast.jobs) > 0:
		return w.now + minTXRetry
	case len(w.fast.on) > 0:
		at, _ := w.fast.on.first()
		return max(at, w.now+fastLook)
	}
	return w.now + maxSleep
}

// moveLimit passes the limit on. The programs read it for each packet: it is stored only when
// it has changed.
func (w *worker) moveLimit(f *fastGroup) {
	if f.acks.moves {
		return
	}
	if limit := w.core.Group(f.id).OffloadLimit(); limit != f.limit {
		f.limit = limit
		f.ring.SetLimit(limit)
	}
}

// tendFast does what is due for the groups on the fast path at the end of a batch.
func (w *worker) tendFast() {
	w.runFastJobs()
	w.openFastGates()
	w.grantAsked()
	w.lookDue()
	w.tendTouched()
	w.tendIdle()
	if w.anyStaged() {
		w.flush()
	}
}
