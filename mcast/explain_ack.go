// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Explanations of what the next acknowledgement to the source waits for.

// ACKExplanation is what the next acknowledgement of a group waits for.
type ACKExplanation struct {
	Steps []Step // facts about the group as a whole
	Waits []Wait // the receivers that it waits for; empty if it waits for none
}

// Wait is one receiver, or the members behind another switch, that the acknowledgement waits for.
type Wait struct {
	Leg    LegID
	Member MemberID   // the member of a connected leg
	PSN    rocev2.PSN // the first one that it has not acknowledged; in the source's space
	Behind int32      // packets that were forwarded and that it has not acknowledged
	Why    []Step
	Ends   []Ending
}

// Ending is something that ends a wait, or brings its end nearer.
type Ending struct {
	At time.Duration // 0: at no certain time
	Step
}

// ExplainACK explains what the next acknowledgement waits for. The group is one of a Clone.
func (v Group) ExplainACK(now time.Duration) *ACKExplanation {
	x := &ackExplainer{now: now}
	if x.g = v.g; x.g != nil {
		x.g.activate(now)
		x.explain()
	}
	return &x.ACKExplanation
}

type ackExplainer struct {
	ACKExplanation
	g   *group
	now time.Duration
}

func (x *ackExplainer) add(rules []string, format string, args ...any) {
	x.Steps = append(x.Steps, Step{rules, fmt.Sprintf(format, args...)})
}

func (x *ackExplainer) explain() {
	g := x.g
	switch {
	case g.is(failed):
		x.add(rules("R25", "R80"), "The group has failed: nothing is acknowledged any more, and its members have to register anew.")
		return
	case g.is(learning):
		x.add(rules("R83"), "The switch has started again, and asks the members what they have: nothing is acknowledged before they have answered.")
		return
	case g.src.member == none:
		x.add(rules("R17"), "The group has no source yet: no acknowledgement is due.")
		x.blocked()
		return
	case g.is(unplaced):
		x.add(rules("R89"), "What the members behind another switch have is not known yet: nothing is acknowledged before that.")
		return
	}
	src := g.memberIP(MemberID(g.src.member))
	if g.is(quarantined) && x.now < g.src.quarantinedUntil {
		x.add(rules("R68"), "%s has sent a PSN below all that its registration has seen: nothing is acknowledged to it for %v.", src, g.src.quarantinedUntil-x.now)
	}
	if n := g.fwd.nxt.Sub(g.agg.acked) - 1; n > 0 {
		x.add(rules("R01", "R14"), "The source %s has all before 0x%06x acknowledged; %s not, up to 0x%06x.", src, g.agg.acked.Next(), packets(n, "is", "are"), g.fwd.nxt.Prev())
		if q := g.policy.quorum; q != 0 {
			x.add(rules("R36"), "%d receivers must have a packet; it waits for one of those that follow at least.", q)
		}
		x.owed(src)
		for i := range g.acks {
			if b := &g.acks[i]; b.flags&isReceiver != 0 && b.acked.LessEq(g.agg.acked) {
				x.wait(i)
			}
		}
	} else {
		x.add(rules("R11"), "All that the source %s has sent here, up to 0x%06x, is acknowledged: no acknowledgement is due.", src, g.agg.acked)
		if g.fwd.midMessage {
			x.add(rules("R29"), "Its message is not complete: the rest has not come%s.", ago(x.now, g.src.lastPSNAt, g.src.hasLastPSN))
		}
		x.owed(src)
	}
	x.blocked()
}

// ago says how long ago t was, if that is known.
func ago(now, t time.Duration, known bool) string {
	if !known {
		return ""
	}
	return fmt.Sprintf(" for %v", (now - t).Round(time.Microsecond))
}

// owed says what the source has been asked for and has not sent.
func (x *ackExplainer) owed(src string) {
	if g := x.g; g.agg.request.awaits(g.agg.acked.Next()) {
		x.add(rules("R09", "R10"), "%s was sent a NAK of 0x%06x, and has not sent that packet since%s: after an RNR NAK it waits, and a NAK that was lost is replaced by its own timeout.",
			src, g.agg.acked.Next(), ago(x.now, g.src.lastPSNAt, g.src.hasLastPSN))
	}
}

// blocked says what new data of the source, or of the next one, waits for.
func (x *ackExplainer) blocked() {
	g := x.g
	if g.is(blocked) {
		var names []string
		for i := range g.legs {
			if g.unproven(i) && len(names) < 4 {
				names = append(names, g.legName(i))
			}
		}
		x.add(rules("R52", "R53"), "The next message waits until new receivers have shown which PSN they expect: %s. Probes go to them every %v.", strings.Join(names, ", "), g.numbering.backoff)
	}
	if g.is(awaitsFile) {
		x.add(rules("R83"), "New data waits until the members' positions are in the state file.")
	}
	if g.is(holding) {
		x.add(rules("R96"), "%d packets are held until then.", len(g.repair.store.held.packets)-g.repair.store.held.first)
	}
	if g.is(refused) {
		x.add(g.refusal.reason.Rules(), "Packet 0x%06x of the source was refused: %s.", g.refusal.psn, g.refusal.reason.Text())
	}
	if g.src.member != none && g.is(frozen) {
		x.add(rules("R84", "R86"), "The right to send is elsewhere in the tree of switches: nothing new of this source is forwarded.")
	} else if g.is(ending) {
		r := rules("R77", "R78")
		if g.tree() != nil {
			r = rules("R77", "R85")
		}
		x.add(r, "The source's turn ends with the message under way, as another member waits.")
	}
}

// wait explains the wait for leg i.
func (x *ackExplainer) wait(i int) {
	g := x.g
	g.applyPauses(i)
	b, l := &g.acks[i], &g.legs[i]
	w := Wait{Leg: LegID(i), Member: l.member, PSN: b.acked.Next(), Behind: g.fwd.nxt.Sub(b.acked) - 1}
	w.Why = x.why(i)
	w.Ends = x.ends(i)
	x.Waits = append(x.Waits, w)
}

// why says why leg i has not acknowledged.
func (x *ackExplainer) why(i int) (steps []Step) {
	g := x.g
	b, m, una := &g.acks[i], &g.activity[i].recovery, g.acks[i].acked.Next()
	add := func(r []string, format string, args ...any) {
		steps = append(steps, Step{r, fmt.Sprintf(format, args...)})
	}
	if !g.legs[i].connected() {
		add(rules("R13", "R50"), "It stands for all members behind another switch, which acknowledges what all of them have: gleam explain ack at that switch says which.")
	}
	switch {
	case b.pending == sevFatal:
		add(rules("R25"), "It has sent a fatal NAK (0x%02x) of 0x%06x: its queue pair is in error.", uint8(b.pendingSyndrome), una)
	case b.pending == sevRNR:
		add(rules("R19"), "It has sent an RNR NAK of 0x%06x: no receive is posted at its queue pair. The source is asked to wait %v.", una, b.pendingSyndrome.RNRCode().Duration())
	case b.pending == sevSequence:
		add(rules("R07", "R14"), "It has sent a NAK of 0x%06x, which was lost on the way to it: the source is asked for it.", una)
	case m.escalated:
		add(rules("R43"), "Local repair has given up on it: it gets what the source itself sends again.")
	case m.state == waiting:
		add(rules("R46", "R51"), "It is sent 0x%06x again in %v: its receive queue was empty (an RNR NAK), or its port's queue was full.", m.cursor, max(0, m.resumeAt-x.now))
	case m.state == probing || m.state == settling:
		add(rules("R45"), "It was silent, and was probed: attempt %d of %d.", m.tries, g.repair.tries)
	case m.state == resending:
		add(rules("R43", "R44"), "It is being repaired: packets from 0x%06x on go to it from the store.", m.cursor)
	case g.repair.store != nil && g.repair.ackReqPSN.LessEq(b.acked) && m.ackReqPSN.LessEq(b.acked):
		add(rules("R45"), "No packet in flight asks for an ACK: receivers need not acknowledge before one does.")
	default:
		add(rules("R02"), "It was sent all up to 0x%06x, and has said nothing of 0x%06x: the packet or the ACK is on its way or was lost, or the host is slow.", g.fwd.nxt.Prev(), una)
	}
	return steps
}

// ends says what ends the wait for leg i.
func (x *ackExplainer) ends(i int) (ends []Ending) {
	g := x.g
	b, a := &g.acks[i], &g.activity[i]
	m := &a.recovery
	add := func(at time.Duration, r []string, format string, args ...any) {
		ends = append(ends, Ending{at, Step{r, fmt.Sprintf(format, args...)}})
	}
	add(0, rules("R01", "R03"), "Its ACK of 0x%06x or a later PSN.", b.acked.Next())
	if m.state == waiting && !m.escalated {
		add(m.resumeAt, rules("R46", "R51"), "The packet goes to it again.")
	} else if m.escalated && g.live.deadAfter > 0 {
		add(m.expectedSince+g.probeTimeout(i), rules("R57"), "A probe, which repairs nothing and asks for a sign of life.")
	} else if g.due.armed(repairTimer) && b.pending == sevNone && !m.escalated && b.acked.Less(m.expectedACK) {
		if m.tries < g.repair.tries {
			add(m.expectedSince+g.probeTimeout(i), rules("R45"), "A probe: the first packet that it may lack goes to it again.")
		} else {
			add(m.expectedSince+g.probeTimeout(i), rules("R43"), "Local repair gives up: it is left to the source.")
		}
	}
	const fails = "the group fails: the source gets NAK 0x63, status 11"
	end := "it is removed, and no longer waited for"
	if !g.canEvict(i) {
		end = fails
	}
	switch {
	case b.pending == sevFatal:
		add(0, rules("R25", "R26"), "When all before it is acknowledged, %s.", end)
	case g.due.armed(livenessCheck) && g.live.deadAfter > 0 && !g.isKept(i) && !g.agg.request.awaits(g.agg.acked.Next()):
		add(max(a.livenessSince, a.lastHeard)+g.livenessTimeout(i), rules("R23", "R39", "R58", "R59", "R110"), "If it stays silent, and another receiver does not, %s.", end)
		if g.givesUpAll() {
			by := rules("R39", "R108")
			if !g.servesOthers() {
				by, end = rules("R39"), fails
			}
			add(max(a.livenessSince, a.lastHeard)+g.live.allDeadAfter(), by, "If it stays silent, and all others do, %s.", end)
		}
	case g.live.deadAfter == 0 || g.isKept(i):
		add(0, rules("R23", "R108"), "It is not removed for its silence: if it stays silent, the source's retries run out, status 12, or the source sends again for ever, where its queue pair has no end of retries (rdma_rxe with retry_cnt 7).")
	}
	if g.due.armed(livenessCheck) && g.lag.time > 0 && b.acked.Less(a.lagPSN) && g.canEvict(i) && !g.isKept(i) {
		add(a.lagSince+g.lagTimeOf(i), rules("R38"), "The lag limit in time: it is removed.")
	}
	return ends
}
