// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/mcast/token"
	"github.com/gleam-rdma/gleam/rocev2"
)

// judge holds the output of a core to the promise. What is owed it knows from the calls.
type judge struct {
	groups map[mcast.GroupID]*group
	frames map[mcast.Handle]sent // retained frames
	counts
}

// group is a group as its members see it.
type group struct {
	spec    mcast.GroupSpec
	members []member
	legs    []leg
	source  int           // MemberID of the source; none: there is none
	first   rocev2.PSN    // the source's first packet of the turn
	nxt     rocev2.PSN    // the PSN behind the highest packet of the source that was forwarded
	acked   rocev2.PSN    // all up to here is acknowledged to the source
	resumed bool          // the turn began before the recording: more may have been forwarded than nxt says
	rejoins bool          // the next turn may have begun elsewhere: others are ahead
	replies bool          // some members only reply (R107): their data goes to the source
	inTree  bool          // there are or were legs to other switches: they say where a turn begins
	starts  []rocev2.PSN  // packets of the turn that begin messages
	sent    mcast.SentACK // what the fast path has acknowledged, as it was last said; Count 0: nothing in this turn
}

const none = -1

// sent is a packet of the source.
type sent struct {
	psn rocev2.PSN
	pkt mcast.Packet
}

type member struct {
	mcast.MemberSpec
	live       bool
	send, recv rocev2.PSN // the next ones of its queue pair, between turns
}

// leg is a leg in the present turn.
type leg struct {
	member   int // the member of a connected leg; none: the leg goes to another switch
	neighbor mcast.Neighbor
	live     int // live members behind it
	receives bool
	base     rocev2.PSN // the first packet that it gets, if it receives
	delta    int32      // the number that is added to a PSN of the source's
	acked    rocev2.PSN // what it has acknowledged, in the source's PSNs
	due      bool       // the turn or a message began at dueAt, of which it has got nothing
	dueAt    rocev2.PSN
}

// judge judges a call.
func (j *judge) judge(c *call, out *mcast.Output) error {
	if !c.hasOutput() || c.err != nil || out.NeedVerify || out.NeedRevoke {
		return nil
	}
	var in *sent
	if c.Packet != nil {
		in = &sent{c.Packet.PSN & rocev2.PSNMask, *c.Packet}
		j.packets++
	}
	j.fast += int(c.Sent.Count)
	g := j.groups[c.Group]
	if c.Kind == apply {
		j.counts.groups += j.apply(c.Op)
	}
	if g != nil {
		if err := g.note(c, in, out); err != nil {
			return err
		}
	}
	for i := range out.Events {
		e := &out.Events[i]
		if g := j.groups[e.Group]; g != nil {
			if err := g.event(e); err != nil {
				return err
			}
		}
	}
	if in != nil && out.Retained {
		j.frames[in.pkt.Frame] = *in
	}
	j.copies += len(out.Copies)
	for i := range out.Copies {
		x := &out.Copies[i]
		of, ok := j.frames[x.Frame]
		if in != nil && in.pkt.Frame == x.Frame {
			of, ok = *in, true
		}
		if !ok {
			return fmt.Errorf("a copy for leg %d is of a frame that is not retained", x.Leg)
		}
		if err := j.groups[x.Group].copied(x, &of); err != nil {
			return err
		}
	}
	for i := range out.Orders {
		o := &out.Orders[i]
		if o.Kind == mcast.OpenGate { // the fast path makes the copies from o.Next on
			if err := j.groups[o.Group].receive(int(o.Leg), o.Next, (o.Next+rocev2.PSN(o.Delta))&rocev2.PSNMask); err != nil {
				return err
			}
		}
	}
	if g != nil && in != nil && out.Drop == mcast.None {
		g.forwarded(in)
	}
	for i := range out.Feedback {
		f := &out.Feedback[i]
		if g := j.groups[f.Group]; g != nil && f.Op == rocev2.Acknowledge {
			j.acks++
			was := g.acked
			if err := g.acknowledged(f); err != nil {
				return err
			}
			if g.acked != was {
				j.raised++
			}
		}
	}
	for _, h := range out.Freed {
		delete(j.frames, h)
	}
	return nil
}

// note notes what the call says of acknowledgements, and of what the fast path has forwarded.
func (g *group) note(c *call, in *sent, out *mcast.Output) error {
	switch {
	case c.Kind == inputAcked || c.Kind == inputCovered && c.ok:
		if c.Kind == inputCovered {
			g.forwarded(&sent{c.Covered.Last.PSN & rocev2.PSNMask, c.Covered.Last})
		}
		for _, a := range c.Legs {
			g.has(int(a.Leg), a.Acked)
		}
		return g.answered(c.Sent)
	case c.Kind == inputReport && out.Drop == mcast.None && g.source != none:
		g.reported(c.Neighbor, &c.Message.Position)
	case in == nil || g.source == none || in.pkt.Op != rocev2.Acknowledge || !in.pkt.Verified || in.pkt.DestQP != g.spec.QPN:
	case g.resumed && in.psn == rocev2.PSNMask && in.pkt.MSN == 0: // by this rdma_rxe says that it has had nothing (R52)
	default:
		for i := range g.legs {
			l := &g.legs[i]
			if !l.receives || l.neighbor != in.pkt.Neighbor || l.member != none && g.members[l.member].IP != in.pkt.Src.Unmap() {
				continue
			}
			if psn, ok := acks(in.psn.Add(-l.delta), in.pkt.Syndrome); ok {
				g.has(i, psn)
			}
		}
	}
	return nil
}

// answered judges what the fast path has acknowledged, when the next report is there: the driver reads what legs
// have before it reads what was sent. Of a leg that has all that was reported, more may be not yet told.
func (g *group) answered(next mcast.SentACK) error {
	for i := range g.legs {
		if l := &g.legs[i]; g.sent.Count > 0 && l.receives && l.live > 0 && l.acked.Less(g.sent.PSN) && l.acked != g.nxt.Prev() {
			return fmt.Errorf("the fast path has acknowledged %#x, leg %d has acknowledged %#x", uint32(g.sent.PSN), i, uint32(l.acked))
		}
	}
	if next.Count > 0 {
		g.sent = next
	}
	return nil
}

// reported notes what a neighbour says of the source: all is had before at.PSN behind its leg, or at all ends of the
// tree if the source is behind it.
func (g *group) reported(from mcast.Neighbor, at *token.Position) {
	if m := &g.members[g.source]; at.Over || uint32(at.Source) != m.Number {
		return
	}
	if g.nxt.Less(rocev2.PSN(at.Next)) {
		g.nxt = rocev2.PSN(at.Next)
	}
	for i := range g.legs {
		if g.legs[i].neighbor == from || g.legs[g.legOf(g.source)].neighbor == from {
			g.has(i, rocev2.PSN(at.PSN).Prev())
		}
	}
}

// acks returns up to which PSN all is acknowledged by an acknowledgement.
func acks(psn rocev2.PSN, s rocev2.Syndrome) (rocev2.PSN, bool) {
	switch s.Kind() {
	case rocev2.KindACK:
		return psn, true
	case rocev2.KindReserved:
		return 0, false
	}
	return psn.Prev(), true
}

// has notes that leg i has all up to psn.
func (g *group) has(i int, psn rocev2.PSN) {
	if i < len(g.legs) && g.legs[i].receives && g.legs[i].acked.Less(psn) && (psn.Less(g.nxt) || g.resumed) {
		g.legs[i].acked = psn
	}
}

// forwarded notes that the packet in of the source has been served.
func (g *group) forwarded(in *sent) {
	if g.source == none || !in.pkt.Op.Is(rocev2.OpRequest) || in.pkt.Src.Unmap() != g.members[g.source].IP || in.psn.Less(g.nxt) {
		return
	}
	g.nxt = in.psn.Next()
	if in.pkt.Op.Is(rocev2.OpStart) {
		g.starts = append(g.starts, in.psn)
		for i := range g.legs {
			if l := &g.legs[i]; l.live > 0 && !l.receives && !l.due {
				l.due, l.dueAt = true, in.psn
			}
		}
	}
}

// copied judges a copy of a packet.
func (g *group) copied(x *mcast.Copy, of *sent) error {
	switch {
	case g.replies:
		return nil
	case int(x.Leg) >= len(g.legs) || g.legs[x.Leg].live == 0:
		return fmt.Errorf("a copy for leg %d, behind which there is no member", x.Leg)
	case g.source == none || of.pkt.Src.Unmap() != g.members[g.source].IP:
		return fmt.Errorf("a copy for leg %d is of a packet of %v, which is not the source", x.Leg, of.pkt.Src)
	}
	l, w := &g.legs[x.Leg], g.spec.Window
	g.forwarded(of)
	if err := g.receive(int(x.Leg), of.psn, x.PSN); err != nil {
		return err
	}
	if l.member != none && of.pkt.Op.Is(rocev2.OpRETH) && of.pkt.DMALen > 0 && w != (mcast.Window{}) && of.pkt.RKey == w.RKey {
		if m := g.members[l.member].Window; x.Flags&mcast.SetRETH == 0 || x.RKey != m.RKey || x.VA != m.Base+(of.pkt.VA-w.Base) {
			return fmt.Errorf("a copy for leg %d has not the memory of its member", x.Leg)
		}
	}
	return nil
}

// receive judges the PSN that the source's packet psn has toward leg i.
func (g *group) receive(i int, psn, toward rocev2.PSN) error {
	l := &g.legs[i]
	if i == g.legOf(g.source) {
		return fmt.Errorf("a copy for the source, of PSN %#x", uint32(psn))
	}
	if !l.receives {
		base := g.first
		switch {
		case l.member != none:
			base = psn.Add(-toward.Sub(g.members[l.member].recv))
		case l.due:
			base = l.dueAt
		}
		if psn.Less(base) || !g.begins(base) {
			return fmt.Errorf("the first copy for leg %d, of %#x, has PSN %#x, as if a message had begun for it at %#x", i, uint32(psn), uint32(toward), uint32(base))
		}
		g.start(i, base, toward.Sub(psn))
	}
	if toward != psn.Add(l.delta) || psn.Less(l.base) {
		return fmt.Errorf("a copy for leg %d, of %#x, has PSN %#x, want %#x; its first is %#x", i, uint32(psn), uint32(toward), uint32(psn.Add(l.delta)), uint32(l.base))
	}
	return nil
}

// begins reports whether the turn or a message begins at psn.
func (g *group) begins(psn rocev2.PSN) bool {
	for i := len(g.starts) - 1; i >= 0; i-- {
		if g.starts[i] == psn {
			return true
		}
	}
	return psn == g.first
}

// start has leg i receive from base on. Copies to other switches have the source's PSNs.
func (g *group) start(i int, base rocev2.PSN, delta int32) {
	l := &g.legs[i]
	if l.receives, l.due, l.base, l.acked = true, false, base, base.Prev(); l.member != none {
		l.delta = delta
	}
}

// acknowledged judges what a member is told.
func (g *group) acknowledged(f *mcast.Feedback) error {
	psn, ok := acks(f.PSN, f.Syndrome)
	switch {
	case !ok || g.replies:
		return nil
	case int(f.To) >= len(g.members):
		return fmt.Errorf("an acknowledgement for member %d, which does not exist", f.To)
	case int(f.To) != g.source:
		if send := g.members[f.To].send; send.LessEq(psn) && !g.inTree {
			return fmt.Errorf("member %d is acknowledged %#x, and its turn ended before %#x", f.To, uint32(psn), uint32(send))
		}
		return nil
	case psn.Less(g.acked):
		return fmt.Errorf("the source is acknowledged %#x after %#x", uint32(psn), uint32(g.acked))
	case psn == g.acked:
		return nil
	case !g.resumed && g.nxt.LessEq(psn):
		return fmt.Errorf("the source is acknowledged %#x, and %#x has not been forwarded", uint32(psn), uint32(g.nxt))
	}
	have := 0
	for i := range g.legs {
		switch l := &g.legs[i]; {
		case i == g.legOf(g.source) || l.live == 0:
		case l.receives && l.base.LessEq(psn) && psn.LessEq(l.acked):
			have++
		case g.spec.Policy == mcast.Quorum:
		case l.receives && l.acked.Less(psn):
			return fmt.Errorf("the source is acknowledged %#x, leg %d has acknowledged %#x", uint32(psn), i, uint32(l.acked))
		case !l.receives && l.due && l.dueAt.LessEq(psn):
			return fmt.Errorf("the source is acknowledged %#x, leg %d has got nothing since the message at %#x", uint32(psn), i, uint32(l.dueAt))
		}
	}
	if g.spec.Policy == mcast.Quorum && have < g.spec.Quorum {
		return fmt.Errorf("the source is acknowledged %#x, %d receivers of %d have it", uint32(psn), have, g.spec.Quorum)
	}
	g.acked = psn
	return nil
}
