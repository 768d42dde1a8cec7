// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// What the maps have of a group is made when the core would offload it: the present source,
// and the legs that it sends to. It is set by a thread of its own, since that asks the kernel,
// in the ports' network namespace.

// isSet reports whether the maps have group f as it is now, and sets them if they have not.
func (w *worker) isSet(f *fastGroup) bool {
	anew := false // the ring is to be another one
	switch {
	case f.step != fastSet && f.step != fastUnset:
		return false
	case f.ring != nil && w.isToResize(f):
		if anew = true; w.isInUse(f) {
			w.leaveFast(f, whyShare)
			return false
		}
	case f.step == fastSet && f.judgedAt == w.fast.changes:
		return true
	case f.judgedAt == w.fast.changes && w.now < f.retryAt:
		return false
	}
	spec, why := w.planFast(f)
	f.judgedAt, f.retryAt = w.fast.changes, w.now+fastRetry
	if why != (Why{}) {
		f.step = fastUnset
		w.leaveFast(f, why)
		return false
	}
	if f.ring != nil && len(spec.Legs) > f.ring.Room() {
		if anew = true; w.isInUse(f) {
			f.judgedAt = 0 // it is tried again before the time
			w.leaveFast(f, whyShare)
			return false
		}
	}
	if f.ring != nil && !anew && !f.awaitsPrograms && f.isLike(&spec) {
		f.step = fastSet
		return true
	}
	w.change(f, spec, anew)
	return false
}

// isLike reports whether the maps have f as spec says.
func (f *fastGroup) isLike(spec *fastpath.GroupSpec) bool {
	a, b := f.spec, *spec
	same := slices.Equal(a.Legs, b.Legs)
	a.Legs, b.Legs = nil, nil
	return same && a.IP == b.IP && a.QPN == b.QPN && a.PMTU == b.PMTU && a.Source == b.Source && a.Window == b.Window &&
		a.NoWrite == b.NoWrite && a.Clones == b.Clones && a.ACK == b.ACK && a.TargetKey == b.TargetKey && a.Slots == b.Slots
}

// planFast returns what the maps are to have of f, or why it cannot take the fast path.
func (w *worker) planFast(f *fastGroup) (s fastpath.GroupSpec, why Why) {
	t, g := &w.fast.table, &w.groups[f.id]
	if !w.core.Group(f.id).OffloadTable(t) {
		return s, whyNoData
	}
	if slices.Contains(w.fast.slow, g.ip) {
		return s, whyTraced
	}
	if g.acrossIsolated {
		return s, Why{Word: fastIsolated}
	}
	src := g.member(t.Source)
	l := &g.legs[src.leg]
	clones := l.port >= 0 && w.ports[l.port].frags // XDP broadcasts no frame in several buffers
	if why := w.whyNotLeg(l, g, clones); why != (Why{}) {
		return s, why
	}
	p := w.ports[l.port]
	s = fastpath.GroupSpec{
		IP: g.ip, QPN: g.qpn, PMTU: g.pmtu, Slots: f.most, NoWrite: t.NoWrite, Clones: clones,
		Source: fastpath.Source{IP: src.ip, MAC: l.nextHop(p), Ifindex: p.ifindex},
		Window: fastpath.Window{Base: t.Window.Base, Len: t.Window.Len, RKey: t.Window.RKey},
	}
	f.source, f.neighbour, f.sourcePort = t.Source, l.neighbour, l.port
	f.legs, f.at = slices.Repeat([]int{-1}, len(g.legs)), nil
	behind := make([]int, len(w.ports))
	if len(t.Legs) > fastpath.MaxGroupLegs {
		return s, Why{Word: fastReceivers}
	}
	for i := range t.Legs {
		o := &t.Legs[i]
		l := &g.legs[o.Leg]
		if why := w.whyNotLeg(l, g, clones); why != (Why{}) {
			return s, why
		}
		if !clones && w.fast.shared.targets.isBarred(l.port) {
			return s, w.fast.shared.targets.whyBarred(l.port)
		}
		if behind[l.port]++; behind[l.port] > fastpath.MaxPortLegs || clones && len(t.Legs) > fastpath.MaxClones {
			return s, Why{Word: fastReceivers}
		}
		p := w.ports[l.port]
		x := fastpath.LegSpec{
			Port: l.port, Ifindex: p.ifindex, PortMAC: p.mac, MAC: l.nextHop(p), VLAN: l.vlan, Gate: fastpath.Gate{Shut: true},
		}
		if l.kind == mcast.Connected {
			x.IP, x.QPN, x.VADelta, x.RKey = l.addr(), l.qpn, o.VADelta, o.RKey
		}
		f.legs[o.Leg] = len(s.Legs)
		f.at = append(f.at, o.Leg)
		s.Legs = append(s.Legs, x)
	}
	w.planACKs(f, &s, &src, l)
	f.noteSlots(&s)
	return s, Why{}
}

// whyNotLeg returns why packets from or to a leg of g cannot take the fast path; clones: copies are made as clones.
func (w *worker) whyNotLeg(l *leg, g *groupTable, clones bool) Why {
	if l.port < 0 {
		return Why{Word: fastLocation, detail: fmt.Sprintf("the location of member %s is not known", l.addr())}
	}
	p := w.ports[l.port]
	switch {
	case !l.isUp(p):
		return Why{Word: fastNeighbour, detail: fmt.Sprintf("the switch behind port %s is not up", p.name)}
	case g.maxFrameBytes-rocev2.EthernetLen-rocev2.VLANLen > p.mtu:
		return Why{Word: fastMTU, detail: fmt.Sprintf("the MTU of port %s, %d, is too small for its longest packets", p.name, p.mtu)}
	}
	if clones && l.vlan != 0 {
		return Why{Word: fastBuffers, detail: fmt.Sprintf("the source's port has frames in several buffers, and member %s is in VLAN %d", l.addr(), l.vlan)}
	}
	if word, why := p.whyNotFast(); word != OnFastPath {
		return Why{Word: word, detail: fmt.Sprintf("port %s %s", p.name, why)}
	}
	return Why{}
}

// whyNotFast returns why no group takes the fast path from or to p, which does or is what why says.
func (p *port) whyNotFast() (word FastWord, why string) {
	rate := p.queue.rate
	if p.remoteTX != nil {
		rate = p.remoteTX.status.rate.Load()
	}
	switch {
	case p.vanished || p.down:
		return fastDown, "is down"
	case !p.native:
		return fastGeneric, "runs XDP in generic mode"
	case p.frags && !p.clones:
		return fastBuffers, fmt.Sprintf("has frames in several buffers, and copies of those cannot be made: %v", p.noClones)
	case rate != 0:
		return fastRate, "has a rate"
	case p.ownECN:
		return fastECN, "has ECN thresholds, and copies by XDP are not marked"
	}
	return OnFastPath, ""
}

// noteSlots notes in s the size of the ring that f has, if it has one.
func (f *fastGroup) noteSlots(s *fastpath.GroupSpec) {
	if f.ring == nil {
		return
	}
	if s.Slots = f.ring.Slots(); s.Slots < minACKSlots && f.acks.never == "" {
		f.acks.never = noACKsRing
	}
}

// change has the thread set the maps for f; anew: with another ring.
func (w *worker) change(f *fastGroup, spec fastpath.GroupSpec, anew bool) {
	x, ring, version, await := w.fast.shared, f.ring, w.fast.changes, f.awaitsPrograms
	f.step = fastChanging
	if ring != nil {
		f.copiesWas += f.gateCopies()
	}
	if ring == nil || anew {
		spec.Slots, spec.Full, f.full = f.most, f.full && !(anew && ring.HasExcess()), false
	}
	if anew {
		f.resizeAt = w.now + fastRetry
	}
	w.fast.jobs = append(w.fast.jobs, func() {
		var err error
		var left fastpath.Counters
		if anew {
			left, _ = ring.Counters() // an error: none are known
			if err = ring.Delete(); err == nil {
				ring = nil
			}
		}
		switch {
		case err != nil:
		case ring == nil:
			ring, err = x.maps.Put(&spec)
		default:
			if await {
				err = ring.AwaitPrograms()
			}
			if err == nil {
				err = ring.Set(&spec)
			}
		}
		w.put(func() {
			f.addLeft(&left)
			w.afterChange(f, ring, spec, version, err)
		})
	})
}

// afterChange notes what the thread has done.
func (w *worker) afterChange(f *fastGroup, ring *fastpath.Group, spec fastpath.GroupSpec, version uint64, err error) {
	f.step = fastUnset
	if ring != f.ring {
		if w.fast.idle.remove(f); ring != nil {
			w.fast.idle.add(f, false)
			f.movedAt, f.payload = w.now, ring.Payload()
		}
		f.ring, f.used = ring, false
	}
	if f.spec.Legs = nil; err == nil {
		f.noteSlots(&spec)
		f.spec, f.awaitsPrograms = spec, false
	}
	switch {
	case f.ended:
		if ring != nil {
			w.deleteFast(f)
		}
		return
	case errors.Is(err, fastpath.ErrNoRoom):
		if w.leaveFast(f, Why{Word: fastNoRoom, detail: err.Error()}); ring == nil { // others are reclaimed
			f.retryAt = w.now + reclaimEvery
		}
	case err != nil:
		w.leaveFast(f, Why{Word: fastFailed, detail: err.Error()})
		x := w.fast.shared
		x.notify(true, "a group does not take the fast path", "group", spec.IP, "error", err)
	case f.judgedAt == version:
		f.step = fastSet
	}
}
