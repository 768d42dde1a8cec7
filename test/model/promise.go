// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"fmt"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/model/notation"
)

// An acknowledgement, and so a completion, promises that the receivers have executed the
// packets. A receiver that only acknowledges them is not enough.

// checkPromise checks an acknowledgement against the receivers: an ACK or NAK implies
// that every receiver, or with a quorum a quorum of them, has executed all packets below
// its PSN.
func (w *World) checkPromise(sw int, f *mcast.Feedback) {
	r := &w.switches[sw]
	src := r.host[f.To]
	n := w.count(src, f.PSN)
	what := "ACK"
	if rank(f.Syndrome) != 0 {
		n--
		what = "NAK"
	}
	if w.cfg.Policy == mcast.Quorum {
		w.checkQuorum(sw, src, n)
	} else {
		for i := range w.hosts {
			h := &w.hosts[i]
			if i != src && r.leg[i] != r.leg[src] && h.member() && !w.memberLeaves(sw, i) && h.progress[src].lacks(n) {
				w.fault(sw, "%s %s to %s says that %d packets are everywhere, %s has %v", what, notation.PSN(f.PSN), name(src), n, name(i), &h.progress[src])
			}
		}
	}
	if w.home[src] != sw {
		if want := w.tagOf(sw, src); f.MSN != want {
			w.fault(sw, "%s %s to %s has tag %x, want %x", what, notation.PSN(f.PSN), name(src), uint32(f.MSN), uint32(want))
		}
		return
	}
	if want := w.streams[src].messagesIn(n); int(f.MSN) != want && !w.cfg.again() && !w.restarted() {
		w.fault(sw, "%s %s to %s has MSN %d, complete are %d messages", what, notation.PSN(f.PSN), name(src), f.MSN, want)
	}
}

// tagOf returns the tag of source src at switch sw (R87).
func (w *World) tagOf(sw, src int) rocev2.MSN {
	return rocev2.MSN(w.layoutOf(w.switches[sw].form.changed)*0x9E3779+uint32(src)+1) & rocev2.PSNMask
}

// checkQuorum checks that enough live receivers have each of the first n packets of src
// that were not acknowledged before.
func (w *World) checkQuorum(sw, src, n int) {
	from := 0
	if w.before.HasSource && int(w.before.Source) == src {
		from = w.count(src, w.before.Acked)
	}
	for k := from; k < n; k++ {
		have := 0
		for i := range w.hosts {
			if h := &w.hosts[i]; i != src && h.member() && !w.memberLeaves(sw, i) && h.progress[src].has(k) {
				have++
			}
		}
		if have < w.cfg.Quorum {
			w.fault(sw, "packet %d of %s is acknowledged, %d receivers of %d have it", k, name(src), have, w.cfg.Quorum)
		}
	}
}

// memberLeaves reports whether this step evicts host i.
func (w *World) memberLeaves(sw, i int) bool {
	for k := range w.swOut.Events {
		if e := &w.swOut.Events[k]; e.Kind == mcast.MemberEvicted && w.switches[sw].host[e.Member] == i {
			return true
		}
	}
	return false
}

// String lists the packets.
func (p *progress) String() string {
	switch {
	case p.first == none:
		return fmt.Sprintf("%d, before it joined for those from %d on", p.before, p.since)
	case p.first == 0:
		return fmt.Sprint(p.got)
	}
	return fmt.Sprintf("%d, and %d to %d", p.before, p.first, int(p.got)-1)
}

// checkAccepted checks that the packet that a receiver accepts is the next of its source,
// and that its bytes are in their place.
func (w *World) checkAccepted(i int, p packet) {
	h, f := &w.hosts[i], &w.streams[p.source].frames[p.index]
	x := &h.progress[p.source]
	if !x.next(&w.streams[p.source], int(p.index)) {
		w.fault(-1, "host %s accepts packet %d of %s, the next is %d", name(i), p.index, name(int(p.source)), x.got)
		return
	}
	at := w.targetOf(i, &p)
	x.accept(int(p.index))
	if !bytes.Equal(at[:len(f.payload)], f.payload) {
		w.fault(-1, "host %s: the bytes of packet %d of %s are not where they belong", name(i), p.index, name(int(p.source)))
	}
}

// targetOf returns the memory of host i for the bytes of p, its next packet.
func (w *World) targetOf(i int, p *packet) []byte {
	h, f := &w.hosts[i], &w.streams[p.source].frames[p.index]
	if f.op.Is(rocev2.OpWrite) {
		return h.region[w.streams[p.source].wrs[f.msg].VA-groupVA+uint64(f.off):]
	}
	return h.bufs[w.receives(i)][f.off:]
}

// receives returns the ID of the receive that host i fills next.
func (w *World) receives(i int) int {
	n := 0
	for s := range w.streams {
		p, st := &w.hosts[i].progress[s], &w.streams[s]
		n += st.messagesIn(int(p.before))
		if p.first != none {
			n += st.messagesIn(int(p.got)) - st.messagesIn(int(p.first))
		}
	}
	return n
}

// checkSent checks that a requester sends the packets of its stream.
func (w *World) checkSent(i int, out packet, p *rc.Packet) {
	if i >= maxSources || int(out.index) >= len(w.streams[i].frames) {
		w.fault(-1, "host %s sends %s, which is not of its stream", name(i), notation.PSN(p.PSN))
		return
	}
	if f := &w.streams[i].frames[out.index]; f.op != p.Op || !bytes.Equal(f.payload, p.Payload) || f.op.Is(rocev2.OpRETH) && f.dmaLen != p.DMALen {
		w.fault(-1, "host %s sends opcode %#x with other bytes as packet %d", name(i), uint8(p.Op), out.index)
	}
}

// checkCompletion checks the promise: a completion at the sender means that every member
// that was not evicted has executed the message, or with a quorum that a quorum has.
func (w *World) checkCompletion(i int, c *rc.Completion) {
	h := &w.hosts[i]
	if c.Status != rc.Success {
		if !w.mayBreak(i) {
			w.fault(-1, "host %s: completion %d with %v", name(i), c.ID, c.Status)
		}
		return
	}
	if c.Recv() {
		w.checkReceived(i, c)
		return
	}
	if int(c.ID) != int(h.done) {
		w.fault(-1, "host %s: message %d completes, the next is %d", name(i), c.ID, h.done)
	}
	h.done++
	end, have := w.streams[i].ends[c.ID], 0
	for j := range w.hosts {
		r := &w.hosts[j]
		if j == i {
			continue
		}
		if r.progress[i].has(end - 1) {
			have++
		}
		if w.cfg.Policy != mcast.Quorum && r.member() && r.progress[i].lacks(end) {
			w.fault(-1, "FALSE COMPLETION: message %d of %s is complete, it ends with packet %d, and %s has %v", c.ID, name(i), end-1, name(j), &r.progress[i])
		}
	}
	if have < w.cfg.Quorum {
		w.fault(-1, "FALSE COMPLETION: message %d of %s is complete, %d receivers of %d have it", c.ID, name(i), have, w.cfg.Quorum)
	}
}

// mayBreak reports whether the queue pair of host i may be in the error state: it has
// answered with a fatal NAK, or has received one.
func (w *World) mayBreak(i int) bool {
	if i == w.cfg.Receivers && w.cfg.ShortBuffer > 0 || w.hosts[i].misnumbered || !w.hosts[i].member() {
		return true
	}
	if i == 0 && w.cfg.Above > 0 { // nobody serves it
		return true
	}
	for sw := range w.switches {
		if (w.switches[sw].failed || w.refused) && len(w.cfg.stream(i)) > 0 {
			return true
		}
	}
	return false
}

// checkEvicted checks that a receiver that lives and answers every packet is not taken
// for dead, as long as nothing on its way is lost or delayed. Where every receiver must
// have all data, a single loss does not excuse it either: that delays its answer by one
// timeout of the source, of which dead is 2.5.
func (w *World) checkEvicted(sw, i int, why rocev2.Syndrome) {
	h := &w.hosts[i]
	switch {
	case rank(why) == 3:
		if !h.broken() {
			w.fault(sw, "%s is evicted for syndrome %#x, and has not failed", name(i), uint8(why))
		}
	case w.outdated: // the file has not what it should have
	case why == mcast.Stranded && w.restarted() && w.cfg.Policy != mcast.Quorum:
		if !h.evicted {
			w.fault(sw, "%s is evicted for what it lacks, and its source can send that", name(i))
		}
	case why == mcast.Misnumbered:
		if !h.misnumbered {
			w.fault(sw, "%s is evicted for its numbers, which are right", name(i))
		}
	case why == mcast.Stranded && w.cfg.Lose-w.left.Lose < 2 && w.left.Duplicate == w.cfg.Duplicate && w.left.Delay == w.cfg.Delay && w.onItsWay(sw, i):
		w.fault(sw, "%s is evicted for what it lacks, and that is on its way to it", name(i))
	case w.stranded(sw, i):
	case !w.excused(sw, i):
		w.fault(sw, "%s is evicted (%d), and lives, and nothing of it was lost or late", name(i), uint8(why))
	case why == mcast.Silent && w.cfg.Policy == mcast.Evict && !w.down(sw, i) && w.cfg.Lose-w.left.Lose < 2 && w.left.Delay == w.cfg.Delay && w.cfg.Reorder == w.left.Reorder:
		w.fault(sw, "%s is evicted, and lives", name(i))
	}
}

// stranded reports whether host i lacks data that a quorum has acknowledged and that
// neither source nor store can send any more. Its packets need not have been lost: a
// resend for it may have been given up.
func (w *World) stranded(sw, i int) bool {
	b := &w.before
	if w.cfg.Policy != mcast.Quorum || !b.HasSource || !b.Members[i].Acked.Less(b.Acked) {
		return false
	}
	n := w.count(int(b.Source), b.Members[i].Acked)
	return !w.switches[sw].keeps(int(b.Source), n, n+1)
}

// onItsWay reports whether the first packet that host i lacks is on the link to it: then
// its NAK has crossed that packet.
func (w *World) onItsWay(sw, i int) bool {
	b := &w.before
	if w.op != nil || !b.HasSource {
		return false
	}
	n := w.count(int(b.Source), b.Members[i].Acked)
	for _, p := range w.links[w.linkOf(sw, w.switches[sw].leg[i])].q {
		if !p.feedback && !p.probe && p.source == uint8(b.Source) && int(p.index) == n {
			return true
		}
	}
	return false
}

// down reports whether host i, or another behind the same leg, no longer answers.
func (w *World) down(sw, i int) bool {
	r := &w.switches[sw]
	for j := range w.hosts {
		if h := &w.hosts[j]; r.leg[j] == r.leg[i] && (h.dead || h.broken() || h.misnumbered) {
			return true
		}
	}
	return false
}

// excused reports whether a switch may take the leg of host i for dead.
func (w *World) excused(sw, i int) bool {
	r := &w.switches[sw]
	for j := range w.hosts {
		if r.leg[j] == r.leg[i] && w.hosts[j].corrupted {
			return true
		}
	}
	return w.down(sw, i)
}

// checkFailed checks that a group fails only for a receiver that cannot go on and cannot
// be evicted, or because its source is removed.
func (w *World) checkFailed(sw, i int, why rocev2.Syndrome) {
	left := 0 // other receivers, which could go on
	for j := range w.hosts {
		if w.counts(j) && j != i && j != int(w.before.Source) && !w.down(sw, j) {
			left++
		}
	}
	switch {
	case why == 0: // see checkLeft
	case w.outdated || w.refused:
	case w.cfg.Policy == mcast.Evict && left > 0:
		w.fault(sw, "the group fails for %s, and %d others could go on", name(i), left)
	case w.cfg.Policy == mcast.Quorum && left >= w.cfg.Quorum:
		w.fault(sw, "the group fails for %s, and %d others could go on", name(i), left)
	case !w.excused(sw, i) && w.hosts[i].member() && !w.stranded(sw, i):
		w.fault(sw, "the group fails for %s, which lives, and nothing of it was lost or late", name(i))
	}
}

// counts reports whether host j is a member, and was one before the packets in flight.
func (w *World) counts(j int) bool {
	src := w.before.Source
	return w.after.Members[j].Live && int(w.hosts[j].progress[src].since) <= w.count(int(src), w.before.Acked)
}

// checkLeft checks that a change makes the group fail only if its source is removed while
// a remaining member may lack its data, or if too few receivers remain.
func (w *World) checkLeft(sw int, c *Change) {
	b, a := &w.before, &w.after
	if b.Failed || !a.Failed || !b.HasSource {
		return
	}
	src, stay := int(b.Source), 0
	for i := range a.Members {
		m := &b.Members[i]
		if !a.Members[i].Live || i == src || !m.Live {
			continue
		}
		stay++
		if m.Acked != b.Nxt.Prev() {
			return
		}
	}
	top := w.count(src, b.Nxt) - 1
	if top > 0 && !w.streams[src].frames[top-1].end || w.cfg.Policy == mcast.Quorum && stay < w.cfg.Quorum {
		return
	}
	w.fault(sw, "%v: the group fails, and all who stay have everything", c)
}

// checkReceived checks that a completed receive holds one whole message.
func (w *World) checkReceived(i int, c *rc.Completion) {
	h := &w.hosts[i]
	for s := range w.streams {
		st := &w.streams[s]
		if n := int(h.progress[s].got); n > 0 && st.frames[n-1].end {
			wr := &st.wrs[st.frames[n-1].msg]
			if c.Bytes == len(wr.Data) && bytes.Equal(h.bufs[c.ID][:c.Bytes], wr.Data) {
				return
			}
		}
	}
	w.fault(-1, "host %s: receive %d completes with %d bytes that are no message", name(i), c.ID, c.Bytes)
}
