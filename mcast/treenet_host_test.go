// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// The hosts of a treeNet, and its runs.

// post adds a message of k packets.
func (h *treeHost) post(k int) {
	switch {
	case k == 1:
		h.ops = append(h.ops, rocev2.SendOnly)
	default:
		h.ops = append(h.ops, rocev2.SendFirst)
		for range k - 2 {
			h.ops = append(h.ops, rocev2.SendMiddle)
		}
		h.ops = append(h.ops, rocev2.SendLast)
	}
	h.n.pending += k
	h.transmit()
}

func (h *treeHost) transmit() {
	n := h.n
	window := cmp.Or(n.window, 8)
	for ; h.nxt < len(h.ops) && h.nxt < h.una+window && n.now >= h.waits; h.nxt++ {
		ask := h.ops[h.nxt].Is(rocev2.OpEnd) || !n.askAtEnd && h.nxt == h.una+window-1
		n.frames = append(n.frames, treeFrame{h.id, h.nxt, h.ops[h.nxt], ask})
		p := Packet{Group: groupIP, Src: h.ip, DestQP: groupQPN, Op: h.ops[h.nxt], PSN: h.sq.Add(int32(h.nxt)), Payload: 256, AckReq: ask}
		p.Frame, p.RetainBytes = Handle(len(n.frames)-1), minFrameBytes
		h.top = max(h.top, h.nxt+1)
		n.send(h.at, p)
	}
	h.timer++
	if timer := h.timer; h.una < len(h.ops) {
		wait := cmp.Or(n.patience, 400*time.Microsecond)
		if rnr := h.waits - n.now; rnr > 0 {
			wait = max(rnr, 400*time.Microsecond)
		}
		n.after(wait, func() {
			if h.timer == timer {
				n.timeouts++
				h.nxt = h.una
				h.transmit()
			}
		})
	}
}

// answered takes feedback, as a requester does.
func (h *treeHost) answered(psn rocev2.PSN, s rocev2.Syndrome) {
	n, i := h.n, int(psn.Sub(h.sq))
	kind := s.Kind()
	if kind != rocev2.KindACK {
		i--
	}
	if i >= h.top {
		if kind != rocev2.KindACK {
			return
		}
		n.tb.Fatalf("%v: host %d is acknowledged packet %d, and has sent %d", n.now, h.id, i, h.top)
	}
	for ; h.una <= i; h.una++ {
		n.pending--
		for _, r := range n.hosts {
			if r.lacks(h.id, h.una) {
				n.tb.Fatalf("%v: FALSE COMPLETION: packet %d of host %d, and host %d has %d", n.now, h.una, h.id, r.id, r.got[h.id])
			}
		}
	}
	h.nxt = max(h.nxt, h.una)
	switch {
	case kind == rocev2.KindACK || i != h.una-1:
	case kind == rocev2.KindSequence:
		h.nxt = h.una
	case kind == rocev2.KindRNR:
		h.nxt, h.waits = h.una, n.now+s.RNRCode().Duration()
	default:
		n.tb.Fatalf("%v: host %d: fatal NAK %v of packet %d", n.now, h.id, s, h.una)
	}
	h.transmit()
}

// isRXE reports whether h answers duplicates as rdma_rxe does before it has accepted anything.
func (h *treeHost) isRXE() bool { return h.id%2 == 1 }

// deliver takes a packet, as a strict responder does.
func (h *treeHost) deliver(psn rocev2.PSN, frame int, ask bool) {
	n := h.n
	if n.now < h.deafTo || h.out {
		return
	}
	reply := func(psn rocev2.PSN, s rocev2.Syndrome) {
		n.send(h.at, Packet{Group: groupIP, Src: h.ip, DestQP: groupQPN, Op: rocev2.Acknowledge, PSN: psn, Syndrome: s, MSN: h.msn})
	}
	switch d := psn.Sub(h.ePSN); {
	case d < 0:
		switch {
		case h.isRXE() && h.ePSN == h.rq:
			reply(rocev2.PSNMask, rocev2.SyndromeACK)
		case ask:
			reply(h.ePSN.Prev(), rocev2.SyndromeACK)
		}
		return
	case d > 0:
		if !h.nakSent {
			h.nakSent = true
			reply(h.ePSN, rocev2.SyndromeNAKSequence)
		}
		return
	}
	f := &n.frames[frame]
	if h.begun != nil && !h.begun[f.src] {
		if h.owed != nil && h.owed[f.src] < f.index {
			n.tb.Fatalf("%v: LOST: the first packet that host %d gets of host %d is %d, after %d", n.now, h.id, f.src, f.index, h.owed[f.src])
		}
		h.begun[f.src], h.got[f.src] = true, f.index
	}
	if f.index != h.got[f.src] || f.src == h.id {
		n.tb.Fatalf("%v: WRONG BYTE: host %d gets packet %d of host %d, and has %d", n.now, h.id, f.index, f.src, h.got[f.src])
	}
	if starts := f.op.Is(rocev2.OpStart); h.mid >= 0 && h.mid != f.src || starts != (h.mid < 0) {
		n.tb.Fatalf("%v: host %d gets %v of host %d within a message of %d", n.now, h.id, f.op, f.src, h.mid)
	}
	h.mid = f.src
	if f.op.Is(rocev2.OpEnd) {
		h.mid = -1
		h.msn++
	}
	h.got[f.src]++
	h.ePSN, h.nakSent = h.ePSN.Next(), false
	if ask {
		reply(h.ePSN.Prev(), rocev2.SyndromeACK)
	}
}

// start puts the group at all switches.
func (n *treeNet) start() {
	for s := range n.parent {
		x := &treeSwitch{n: n, id: s, links: map[int]bool{}}
		n.switches = append(n.switches, x)
	}
	for _, s := range n.switches {
		s.adopt()
		s.put(false)
	}
	for _, s := range n.switches {
		s.connect()
	}
}

// TestR89_TreesThatChange: random trees, with switches that start again and subtrees that
// move, losses, and sources that contend. Nothing is acknowledged that a member lacks, no
// member gets a wrong packet, and all messages are complete at the end.
func TestR89_TreesThatChange(t *testing.T) {
	runs := []int{462, 638, 785, 819, 916, 1013, 1254, 2196, 3302, 3611, 3684, 4425} // have been stuck
	for s := range 300 {
		if s < 60 || !testing.Short() {
			runs = append(runs, s)
		}
	}
	for _, s := range runs {
		if stuck := changingTree(t, uint64(2000+s)*7919+1, false, nil); stuck != "" {
			t.Errorf("run %d: %s", s, stuck)
		}
	}
	for _, seed := range []uint64{
		(2000+6683)*2038074743 + 1,  // a switch did not ask what its source's data before the restart had come to
		(2000+15663)*2038074743 + 1, // a position was lost on the way, and the source did not send again
		(2000+2213)*86028121 + 1,
		(2000+16103)*1780000003 + 1,  // a switch without a position heard only that the source passes over something (R115)
		(2000+103048)*1780000003 + 1, // the same
		(2000+153644)*1780000003 + 1, // a question was passed on for ever, and hid another one (R105)
		(2000+365735)*1780000003 + 1, // a completion was false: a position that was true of the tree before counted (R90)
		(2000+84839)*7368787 + 1,     // the same, before a switch could join the turn
		(2000+4673)*1780000003 + 1,   // a switch without members and without a position did not pass the question on
		(2000+23824)*1780000003 + 1,  // an answer was older than what the source passes over
		(2000+61201)*1780000003 + 1,  // a doubt about the turn under way hid a question that was passed on
		(2000+73664)*1780000003 + 1,  // if a switch answers for others than its own members, and has asked, a completion is false (R105)
		(2000+166105)*1780000003 + 1, // if the switch of a source goes on where that passes over, from a turn's first packet on, one that was lost three times is complete
		(2000+22001)*1780000003 + 1,  // a source that was in doubt, and at rest when the token came, began a message beside an unfinished one
	} {
		if stuck := changingTree(t, seed, false, nil); stuck != "" {
			t.Error(stuck)
		}
	}
	moreTrees(t, 1, false)
}

// TestR90_MembersOfTreesThatChange: as TestR89_TreesThatChange, and receivers leave and join, those
// included that are the last and the first ones on their side of a switch.
func TestR90_MembersOfTreesThatChange(t *testing.T) {
	for _, s := range []struct {
		multiplier uint64
		runs       []uint64
	}{ // have stood still: nobody knew what was acknowledged (R115)
		{7919, []uint64{5554}}, {49979687, []uint64{6602}}, {86028121, []uint64{1517, 2919}}, {104729, []uint64{4092, 4807, 6031, 6553, 6721, 7799}},
		{32452843, []uint64{2943, 3036, 3825, 6049, 6419, 7811, 7838}}, {15485863, []uint64{4876, 5044}}, {982451653, []uint64{6324}},
	} {
		for _, n := range s.runs {
			if stuck := changingTree(t, (2000+n)*s.multiplier+2, true, nil); stuck != "" {
				t.Errorf("run %d of multiplier %d: %s", n, s.multiplier, stuck)
			}
		}
	}
	for _, seed := range []uint64{
		(2000+705)*7919 + 1,          // a message was acknowledged that a member lacked which had joined before it
		(2000+7841)*86028121 + 2,     // a turn's end was wanted by nobody: a loop without end
		(2000+119133)*1780000003 + 2, // feedback of what was not forwarded here counted for nothing where members wait to join (R89)
		(2000+137416)*1780000003 + 2, // the same
		(2000+232672)*1780000003 + 2, // a member got a message within another one: a position of the tree before said that the source is at rest
		(2000+53569)*1780000003 + 2,  // a question was passed on to a switch that nobody can tell what its members have
		(2000+7558)*1780000003 + 2,   // a first packet that was lost in a new tree was taken for one that the members here had had
		(2000+99312)*1780000003 + 2,  // a source passed over what its switch waited for while it waited for members that join (R115)
		(2000+114366)*1780000003 + 2, // a switch without members did not say that nobody behind it knows a position (R105)
		(2000+76918)*1780000003 + 2,  // members that wait for a first message kept a question from being passed on (R105, R115)
		(2000+7143)*1780000003 + 2,   // a source that another switch knows to be unfinished was doubted, in term after term
		(2000+59346)*1780000003 + 2,  // the root was aside, and had the first token of each term go to a source that it had for unfinished
	} {
		if stuck := changingTree(t, seed, true, nil); stuck != "" {
			t.Error(stuck)
		}
	}
	runs := []int{856, 957, 1006, 1031, 1134, 1193, 1292, 1584, 1692, 1716, 1761, 1877, 3767} // have been stuck, or have removed a member
	for s := range 300 {
		if s < 60 || !testing.Short() {
			runs = append(runs, s)
		}
	}
	for _, s := range runs {
		if stuck := changingTree(t, uint64(2000+s)*7919+2, true, nil); stuck != "" {
			t.Errorf("run %d: %s", s, stuck)
		}
	}
	moreTrees(t, 2, true)
}

// changingTree makes a run. It returns what is not complete at the end of it.
func changingTree(t fatalReporter, seed uint64, members bool, log func(string, ...any)) (stuck string) {
	rng := random(seed)
	n := newTreeNet(t, rng, 2+rng(5), 3+rng(5))
	for !n.fits(n.parent) {
		n = newTreeNet(t, rng, 2+rng(5), 3+rng(5))
	}
	n.loss = []int{0, 0, 10, 50}[rng(4)]
	n.stored = rng(2) == 0
	if rng(2) == 0 {
		n.repair = RepairSpec{Bytes: 64 * minFrameBytes, Timeout: 100 * time.Microsecond, Tries: 4}
	}
	if log != nil {
		n.log = log
	}
	sources := len(n.hosts)
	n.evicted = n.rejoin
	if members {
		sources = n.comeAndGo()
	}
	n.start()
	for range 1 + rng(3) {
		h := n.hosts[rng(sources)]
		for range 1 + rng(12) {
			k := 1 + rng(6)
			n.after(time.Duration(rng(60))*time.Millisecond, func() { h.post(k) })
		}
	}
	crashes, shapes := rng(4), rng(4)
	for range crashes {
		s := rng(len(n.parent))
		n.after(time.Duration(rng(60000))*time.Microsecond, func() {
			if n.mayCrash(s) {
				n.crash(s)
			}
		})
	}
	for range shapes {
		n.after(time.Duration(rng(60000))*time.Microsecond, n.reshape)
	}
	n.run(60*time.Millisecond, func() bool { return false })
	n.loss = min(n.loss, 10)
	if !n.run(4*time.Second, func() bool { return n.pending == 0 && !n.busy }) {
		for _, s := range n.switches {
			g := s.sw.groups[0]
			n.log("switch %d: source %d acked %06x nxt %06x inside %v unplaced %v resume %+v token %+v legs %+v acks %+v", s.id, g.src.member, uint32(g.agg.acked), uint32(g.fwd.nxt),
				g.fwd.midMessage, g.is(unplaced), g.extra.resume, g.tree().status(), g.legs, g.acks)
		}
		return fmt.Sprintf("%v: %d packets are not complete; update under way: %v; %s", n.now, n.pending, n.busy, cmp.Or(n.conflict, "no conflict"))
	}
	if n.rejoined > 0 {
		treesWithEvictions++
	}
	if n.conflict != "" {
		return n.conflict + ", and all is complete"
	}
	n.run(n.now+50*time.Millisecond, func() bool { return false })
	n.reports = 0
	end := n.now + time.Second
	n.after(time.Second, func() {})
	if n.run(end, func() bool { return n.now >= end }); n.reports > maxIdleReports*len(n.switches) {
		return fmt.Sprintf("%v: %d switches have sent %d messages of the token within a second in which nobody sends", n.now, len(n.switches), n.reports)
	}
	return ""
}

// maxIdleReports is the most messages of the token for each switch of an idle group in a second.
// Between neighbours that have agreed there are none. What a neighbour does not answer is repeated
// every 64 ms at last.
const maxIdleReports = 20

// mayCrash reports whether switch s can start again with what it has: members of its own need
// their positions stored, and of two switches that lose everything at the same time nobody
// may know a message that has begun.
func (n *treeNet) mayCrash(s int) bool {
	for _, h := range n.hosts {
		if h.at == s && !n.stored {
			return false
		}
	}
	for _, x := range n.switches {
		if x.down {
			return false
		}
	}
	return true
}
