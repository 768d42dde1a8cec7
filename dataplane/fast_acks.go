// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"time"

	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// ACKs that the programs count (docs/AGGREGATION.md, R113): while nothing unusual is about a group's
// feedback, they take the ACKs of its receivers, and answer its source. The worker reads the words in
// which they are counted whenever it reports packets: the words first, then the group's, since what
// an ACK is of was forwarded before. It opens and closes the words.

// fastACKs is what a worker has of a group's words.
type fastACKs struct {
	never    string // why the programs count no ACKs with the present maps; "": they may
	counting bool   // the words are open
	moves    bool   // the programs move the limit, or have since the last report of all
	why      string // why they are not

	first    rocev2.PSN // the first PSN of the grant
	messages rocev2.MSN // the source's messages before it

	legs []fastACK // words by index in spec.Legs
	sent fastpath.ACKWord
	told fastpath.ACKWord // sent, as the core has been told
	left uint64           // frames that had left by the source's port then

	taken, answered uint64 // ACKs that the programs have taken, and have sent
}

// fastACK is the word of a leg.
type fastACK struct {
	read, told fastpath.ACKWord
	taken, was uint64        // ACKs that were not left to the worker, and those of them that the core was told of
	at         time.Duration // time of the last ACK, on CLOCK_MONOTONIC
}

// Why the programs count no ACKs of a group.
const (
	noACKsTree    = "tree" // the source or a receiver is behind another switch
	noACKsVLAN    = "vlan" // the frame of an ACK would have to become longer or shorter
	noACKsLegs    = "legs"
	noACKsPort    = "port"    // the source's takes no redirected frames
	noACKsBuffers = "buffers" // frames are in several buffers, and those are not redirected
	noACKsRing    = "ring"    // the source may have more packets outstanding than half of the ring has slots
)

// minACKSlots is the least size of a ring of whose packets ACKs are counted. An ACK behind which the limit leaves
// no more than half of the ring is the worker's, who moves the limit first: what the source's window lets it send then
// has room. rdma_rxe has 128 packets outstanding at most.
const minACKSlots = 1 << 8

// planACKs adds to s how the programs answer the source.
func (w *worker) planACKs(f *fastGroup, s *fastpath.GroupSpec, src *member, l *leg) {
	f.acks.never = ""
	for i := range s.Legs {
		switch {
		case !s.Legs[i].IP.IsValid():
			f.acks.never = noACKsTree
		case s.Legs[i].VLAN != 0:
			f.acks.never = noACKsVLAN
		case w.ports[s.Legs[i].Port].frags:
			f.acks.never = noACKsBuffers
		}
	}
	switch {
	case l.kind != mcast.Connected:
		f.acks.never = noACKsTree
	case l.vlan != 0:
		f.acks.never = noACKsVLAN
	case s.Clones:
		f.acks.never = noACKsBuffers
	case w.fast.shared.targets.isBarred(l.port):
		f.acks.never = noACKsPort
	case len(s.Legs) > mcast.MaxACKLegs:
		f.acks.never = noACKsLegs
	case s.Slots < minACKSlots:
		f.acks.never = noACKsRing
	}
	if f.acks.never == "" {
		s.ACK = fastpath.ACKSpec{Port: l.port, PortMAC: w.ports[l.port].mac, QPN: src.qpn, SourcePort: sourcePort(src.qpn)}
	}
}

// judgeACKs opens or closes a group's words, as the core says whether the programs may count its ACKs.
func (w *worker) judgeACKs(f *fastGroup) {
	a := &f.acks
	if a.why = a.never; a.why == "" {
		a.why = w.core.Group(f.id).OffloadACKs(len(f.spec.Legs))
	}
	switch may := a.why == ""; {
	case may && !a.counting:
		w.openACKs(f)
	case !may && a.counting:
		f.closeLimit()
		f.ring.CloseACKs()
		w.reportGroup(f)
		a.counting = false
	}
	if f.step == fastGranted && a.counting {
		w.openLimit(f)
	}
}

// openACKs opens the words of a group at what the core has, of which everything is told.
func (w *worker) openACKs(f *fastGroup) {
	a := &f.acks
	acked, sent := w.core.Group(f.id).Acked(f.at, w.fast.acked[:0])
	w.fast.acked = acked
	opened, answered := f.ring.OpenACKs(acked, sent, a.first, a.messages, f.spec.Slots/2+1)
	a.counting, a.legs = true, a.legs[:0]
	for k := range opened {
		n := f.ring.TakenACKs(k)
		a.legs = append(a.legs, fastACK{told: opened[k], read: opened[k], taken: n, was: n})
	}
	a.told, a.sent = answered, answered
}

// readACKs reads the words of a group. It comes before the group's word is read.
func (f *fastGroup) readACKs() {
	if a := &f.acks; a.counting {
		for k := range a.legs {
			a.legs[k].taken = f.ring.TakenACKs(k)
			a.legs[k].read, a.legs[k].at = f.ring.Acked(k)
		}
		a.sent = f.ring.SentACK()
	}
}

// tellACKs tells the core what was read, of what is reported.
func (w *worker) tellACKs(f *fastGroup) {
	a := &f.acks
	if !a.counting {
		return
	}
	legs, last := w.fast.legs[:0], time.Duration(0)
	for k := range a.legs {
		x := &a.legs[k]
		if x.read == x.told && x.taken == x.was {
			continue
		}
		at, sentAt, psn := w.sinceBase(x.at), time.Duration(0), rocev2.MinPSN(x.read.PSN, f.reported.Prev())
		if psn == x.read.PSN {
			sentAt = w.sentAt(f, psn)
		}
		legs = append(legs, mcast.LegACK{Leg: f.at[k], Acked: psn, Count: uint32(x.taken - x.was), At: at, SentAt: sentAt})
		w.noteTaken(f, x)
		x.told, last = fastpath.ACKWord{PSN: psn, Count: x.read.Count}, max(last, at)
	}
	w.fast.legs = legs
	sent := a.unsaid()
	if len(legs) == 0 && sent.Count == 0 {
		return
	}
	w.noteAnswers(f, sent, last)
	w.coreCalls++
	w.out.MaxResends = -1 // the core's timer has them sent
	w.core.InputAcked(max(w.now, f.clock), f.id, legs, sent, &w.out)
	if w.out.Drop != mcast.None {
		w.count.core[w.out.Drop]++
	}
	w.sendOwn()
}

// unsaid is what the core has not been told of the ACKs to the source.
func (a *fastACKs) unsaid() mcast.SentACK {
	return mcast.SentACK{PSN: a.sent.PSN, Count: (a.sent.Count - a.told.Count) & fastpath.ACKCountMask}
}

// noteTaken counts the ACKs of a leg, as they were read.
func (w *worker) noteTaken(f *fastGroup, x *fastACK) {
	n := x.taken - x.was
	x.was = x.taken
	f.acks.taken += n
	w.count.feedbackIn += n
}

// noteAnswers notes the ACKs that the source was sent, of which the core is told; last is the time of the last ACK of a leg.
func (w *worker) noteAnswers(f *fastGroup, sent mcast.SentACK, last time.Duration) {
	a := &f.acks
	a.told = a.sent
	a.answered += uint64(sent.Count)
	w.count.feedbackOut += uint64(sent.Count)
	if sent.Count != 0 {
		w.meters.acknowledged(last, f.id, f.source, sent.PSN)
		w.lookAtAnswers(f)
	}
}

// lookAtAnswers notes that ACKs of the programs have not left by the source's port, if no frame has.
func (w *worker) lookAtAnswers(f *fastGroup) {
	left := w.fast.shared.targets.transmitted(f.sourcePort).Sent
	if left == f.acks.left {
		w.fast.shared.targets.skipped(f.sourcePort)
	}
	f.acks.left = left
}

// sentAt returns when the programs have forwarded psn, if it asks for an ACK; 0: it does not, or is not in the ring.
func (w *worker) sentAt(f *fastGroup, psn rocev2.PSN) time.Duration {
	if _, at, ok := f.ring.View(psn); ok && at != 0 {
		return max(at-w.fast.shared.base, 1)
	}
	return 0
}
