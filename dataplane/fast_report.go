// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"runtime"
	"time"

	"github.com/gleam-rdma/gleam/dataplane/trace"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Reports: the core is given every packet that the programs have forwarded, out of its slot in
// the ring, as if it came now. What the core retains of them are handles of slots, and repairs
// are made from there; packets that came the worker's way stay in their frames.

// ringHandle marks a handle that names the slot of a PSN in its group's ring.
const ringHandle mcast.Handle = 1 << 31

// reportFast reports what the programs have forwarded of group id until now, if they have it.
// It is called before the core is.
func (w *worker) reportFast(id mcast.GroupID) {
	if f := w.fast.granted(id); f != nil {
		w.reportGroup(f)
	}
}

// reportBefore is reportFast before a packet of the present batch, which was taken from its ring
// before: one report is enough for a batch. The programs change the group's word with each
// packet, so to read it costs them and the worker a transfer of its cache line.
func (w *worker) reportBefore(id mcast.GroupID) {
	if f := w.fast.granted(id); f != nil && f.reportedFor != w.fast.taken {
		f.reportedFor = w.fast.taken
		w.reportGroup(f)
	}
}

func (w *worker) reportGroup(f *fastGroup) {
	w.touch(f)
	w.readClock() // before the word: packets beyond it came later
	looked := w.now
	f.closeLimit() // before the words: what has left the ring is told of by them
	f.readACKs()
	hi := f.ring.State().Hi
	w.reportUpTo(f, hi)
	if f.lookedAt, f.lookedHi = looked, hi; f.step == fastGranted {
		w.tellACKs(f)
	}
	if f.damaged != (Why{}) {
		w.takeBack(f, f.damaged)
	}
}

// touchAhead is the number of slots whose headers are loaded together: another CPU has written
// them, and these loads overlap.
const touchAhead = 8

// reportUpTo reports the packets before hi.
func (w *worker) reportUpTo(f *fastGroup, hi rocev2.PSN) {
	w.meterPayload(f)
	if !f.reported.Less(hi) {
		f.acks.moves = false
		return
	}
	if w.coverAll(f, hi); !f.reported.Less(hi) {
		return
	}
	f.movedAt = w.now
	mayPause := f.skipped || w.elapsed()-f.movedFrom > mcast.MaxInOrderGap
	f.movedFrom, f.skipped = f.lookedAt, false
	for first := true; f.reported.Less(hi); first = false {
		psn := f.reported
		if psn%touchAhead == 0 || first {
			f.ring.Touch(psn, min(touchAhead, int(hi.Sub(psn))))
		}
		f.reported = psn.Next()
		if w.tracing != nil {
			w.reportTraced(f, psn, first && mayPause, f.reported == hi)
			continue
		}
		w.reportPacket(f, psn, first && mayPause, f.reported == hi)
	}
	f.ends = f.ring.Ends(f.reported.Prev())
	w.readClock() // reports may have later times
}

// reportPacket reports one packet. paused: it may have come after a pause of the source (R64).
// last: no later one is known of.
func (w *worker) reportPacket(f *fastGroup, psn rocev2.PSN, paused, last bool) {
	frame, at, ok := w.awaitStored(f, psn)
	if !ok {
		return
	}
	p, x := &w.fast.pkt, &w.fast.frame
	if rocev2.Decode(frame, x) != rocev2.OK || x.Kind != rocev2.KindRoCE {
		f.damaged = whyDamaged // the programs take no such packet
		return
	}
	packetOf(x, mcast.Port(f.sourcePort), p)
	p.Neighbor, p.Frame, p.RetainBytes = f.neighbour, ringHandle|mcast.Handle(psn), uint32(f.ring.SlotBytes())
	p.Verified = paused && at == 0 && x.VerifyICRC() // else the core sees the time
	if paused && at == 0 && !p.Verified {
		w.refuseReport(f, p)
		return
	}
	f.clock = w.timeOfReport(f, at, last)
	w.coreCalls++
	w.out.MaxResends = -1 // the core's timer has them sent
	w.core.InputForwarded(f.clock, f.id, p, &w.out)
	if w.out.NeedVerify {
		if !x.VerifyICRC() {
			w.refuseReport(f, p)
			return
		}
		p.Verified = true
		w.coreCalls++
		w.core.InputForwarded(f.clock, f.id, p, &w.out)
	}
	f.status.Packets++
	w.count.dataIn++
	if w.out.Drop != mcast.None {
		w.count.core[w.out.Drop]++
	}
	if w.out.Drop == mcast.None {
		w.groups[f.id].source.note(x)
	}
	w.sendOwn()
	if w.out.Drop == mcast.None {
		w.meterForwarded(f.clock, f.id, p)
	}
}

// fastStore is the time within which the programs have stored a packet that they have claimed.
// They take a µs, but for a processor that gets no time from a hypervisor. Other groups wait meanwhile: no
// longer than this worker waits for a processor where that happens. To go on too early costs
// the group its fast path for a while and the source a repetition, and nothing else.
const fastStore = 10 * time.Millisecond

// awaitStored returns packet psn of the ring, which another processor may be about to store.
// The worker waits: the core has to know of it before anything else of the group. If it is not
// stored in time, it is dropped, and the source has to send it again.
func (w *worker) awaitStored(f *fastGroup, psn rocev2.PSN) (frame []byte, at time.Duration, ok bool) {
	frame, at, ok = f.ring.View(psn)
	for spins, end := 1, time.Duration(0); !ok; spins++ {
		if spins%64 == 0 {
			runtime.Gosched()
			switch now := w.elapsed(); {
			case end == 0:
				end = now + fastStore
			case now >= end || f.damaged != (Why{}):
				return w.storedLast(f, psn)
			}
		}
		frame, at, ok = f.ring.View(psn)
	}
	return frame, at, true
}

// storedLast returns packet psn, if it was stored until now; else no copy of it leaves. A program that was
// held up goes on at any time, perhaps together with this worker: it stores the packet, and copies
// leave through open gates. So the gates are shut before the last look. The group is taken back.
func (w *worker) storedLast(f *fastGroup, psn rocev2.PSN) (frame []byte, at time.Duration, ok bool) {
	f.damaged, f.awaitsPrograms = whyNotStored, true
	for k := range f.gates {
		f.ring.Shut(k)
	}
	if frame, at, ok = f.ring.View(psn); ok {
		return frame, at, true
	}
	w.count.dataIn++
	w.count.drop[dropNotStored]++
	w.fast.shared.notify(true, "a packet that the XDP programs have forwarded is not in the ring of its group: the group is taken off the fast path, and the source sends the packet again", "group", f.spec.IP, "psn", psn)
	return nil, 0, false
}

// refuseReport drops a packet that the receivers have dropped, too. The source sends it again
// the worker's way.
func (w *worker) refuseReport(f *fastGroup, p *mcast.Packet) {
	f.damaged = whyDamaged
	f.payload += uint64(p.Payload) // the programs have counted it
	w.count.dataIn++
	w.count.drop[dropBadICRC]++
}

// timeOfReport returns the time of a packet, as the programs have noted it if it has AckReq:
// round trips are measured from there. Others came no earlier than the packet before them,
// and the last one no later than now.
func (w *worker) timeOfReport(f *fastGroup, at time.Duration, last bool) time.Duration {
	t := f.clock
	switch {
	case at != 0:
		t = max(t, min(at-w.fast.shared.base, w.elapsed()))
	case last:
		t = max(t, w.now)
	}
	return t
}

// fastRepair is the packet of a ring of which copies are made.
type fastRepair struct {
	frame rocev2.Frame
	bytes [largestSlot]byte // the frame's, as the slot may be written while copies are made
	chain rocev2.Chain      // the frame, cut as it would have been received
	descs [xsk.MaxChain]xsk.Desc
	group mcast.GroupID
	psn   mcast.Handle
	call  uint64 // the call of the core in which the frame was decoded
}

// copyFromRing stages a copy of a packet in a ring.
func (w *worker) copyFromRing(c *mcast.Copy) {
	r := &w.fast.repair
	if r.call != w.coreCalls || r.group != c.Group || r.psn != c.Frame {
		f := w.fast.of(c.Group)
		if f == nil || f.ring == nil {
			return // the group is removed
		}
		frame, ok := f.ring.Keep(rocev2.PSN(c.Frame&^ringHandle), r.bytes[:])
		r.chain = r.chain[:0]
		for ; len(frame) > 0; frame = frame[len(r.chain[len(r.chain)-1]):] {
			r.chain = append(r.chain, frame[:min(len(frame), w.umem.MaxReceive())])
		}
		if !ok || rocev2.DecodeChain(&r.chain, &r.frame) != rocev2.OK {
			r.call = 0
			w.count.drop[dropNotKept]++
			return
		}
		r.group, r.psn, r.call = c.Group, c.Frame, w.coreCalls
	}
	ds := r.descs[:len(r.chain)]
	if w.tracing != nil {
		w.copyTraced(trace.Resent, c, &r.frame, ds, false)
		return
	}
	w.copy(c, &r.frame, ds, false)
}
