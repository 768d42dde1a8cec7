// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Recorded runs of whole networks, in testdata/runs: what each costs in time, packets and
// counters. A change of the switch that makes its groups slower, or makes it send more,
// shows there as a difference of numbers; -rewrite records them anew. The runs are judged
// as all runs of a network are: by the hosts, by naiveModel and by the invariants.
//
//	run members=6 [sources=2] [children=2] [loss=30] [seeds=4]      loss in 1000
//	    [policy=evict|quorum:2] [dead=2ms] [deadmost=4ms] [lag=PSNS] [lagtime=2ms] [stall=20ms] [turns=1ms]
//	    [silent] [fatals=2] [joins=3] [leaves=2] [corrupt=10] [psn] [verify] [writes] [congested=9] [paused=8]
func TestRecordedRuns(t *testing.T) {
	datadriven.RunTest(t, "testdata/runs", func(t *testing.T, d *datadriven.TestData) string {
		var w strings.Builder
		a := args{t, d}
		for seed := range a.int("seeds", 4) {
			recordRun(a, uint64(seed), &w)
		}
		return w.String()
	})
}

func (a args) int(key string, def int) int { return int(num(a.t, a.str(key, fmt.Sprint(def)), 10, 31)) }

func (a args) duration(key string) time.Duration {
	d, err := time.ParseDuration(a.str(key, "0"))
	if err != nil {
		a.t.Fatal(err)
	}
	return d
}

func recordRun(a args, seed uint64, w *strings.Builder) {
	n := &network{
		tb: a.t, passed: map[rocev2.PSN]severity{}, silenced: -1, rng: random(seed), loss: a.int("loss", 0), verify: a.d.HasArg("verify"),
		corrupt: a.int("corrupt", 0), damagePSN: a.d.HasArg("psn"), writes: a.d.HasArg("writes"), congested: a.int("congested", 0), unfair: true,
		deadAfter: a.duration("dead"), sourceTimeout: a.duration("stall"), turnTime: a.duration("turns"),
	}
	switch p, k, _ := strings.Cut(a.str("policy", ""), ":"); p {
	case "evict":
		n.policy = Evict
	case "quorum":
		n.policy, n.quorum = Quorum, int(num(a.t, k, 10, 16))
	}
	n.amend = func(s *GroupSpec) {
		s.DeadAfterMax, s.LagPSNs, s.LagTime = a.duration("deadmost"), a.int("lag", 0), a.duration("lagtime")
		if n.writes {
			s.Window = groupWindow
		}
	}
	members, sources := a.int("members", 6), a.int("sources", 1)
	if a.d.HasArg("silent") {
		n.silenced = members - 1
	}
	var sent tallied
	n.trace = sent.count
	n.build(members, sources, a.int("children", 0))
	n.fatals = a.int("fatals", 0)
	n.churn(a.int("joins", 0), a.int("leaves", 0), 5*time.Millisecond)
	for k := range a.int("paused", 0) {
		n.after(time.Duration(n.rng(int(5*time.Millisecond))), func() {
			n.nodes[0].sw.SetPortPaused(0, time.Duration(k+1)*timeout)
			n.nodes[0].sw.SetPortDelay(0, time.Duration(n.rng(3))*rtt)
		})
	}
	if len(n.nodes) > 1 { // sources behind different switches take turns by agreement
		for i, h := range n.hosts[:sources-1] {
			h.then = n.hosts[i+1].start
		}
		n.after(0, n.hosts[0].start)
		n.finish()
	} else {
		n.run()
	}
	n.costs(seed, &sent, w)
}

// tallied counts the packets of a run.
type tallied struct{ ack, nak, rnr, fatal, keepalives int }

func (s *tallied) count(v ...any) {
	switch v[0] {
	case "probe":
		s.keepalives++
	case "feedback":
		switch v[3].(rocev2.Syndrome).Kind() {
		case rocev2.KindACK:
			s.ack++
		case rocev2.KindSequence:
			s.nak++
		case rocev2.KindRNR:
			s.rnr++
		default:
			s.fatal++
		}
	}
}

// costs writes what a run has cost, of all hosts and all switches.
func (n *network) costs(seed uint64, sent *tallied, w *strings.Builder) {
	sum, transmitted, received, naks, removed := Counters{}, 0, 0, 0, 0
	for _, h := range n.hosts {
		transmitted, received, naks = transmitted+h.transmitted, received+h.received, naks+h.nakCount
		if h.removed {
			removed++
		}
	}
	retained := int64(0)
	for _, d := range n.nodes {
		var st GroupStatus
		d.sw.Group(0).Snapshot(&st)
		c := &st.Counters
		sum.DataIn, sum.Copies, sum.FeedbackIn, sum.FeedbackOut = sum.DataIn+c.DataIn, sum.Copies+c.Copies, sum.FeedbackIn+c.FeedbackIn, sum.FeedbackOut+c.FeedbackOut
		sum.NAKsServed, sum.Probes, sum.Resent, sum.NotRetained = sum.NAKsServed+c.NAKsServed, sum.Probes+c.Probes, sum.Resent+c.Resent, sum.NotRetained+c.NotRetained
		for r := range c.Drops {
			sum.Drops[r] += c.Drops[r]
		}
		retained = max(retained, st.RetainedMax)
	}
	fmt.Fprintf(w, "seed %d: %v, hosts sent %d, got %d, asked %d times, %d removed", seed, n.now, transmitted, received, naks, removed)
	if n.failure != nil {
		fmt.Fprintf(w, ", failed for %d", n.failure.Cause)
	}
	fmt.Fprintf(w, "\n  data %d, copies %d, feedback %d in, %d out: %d ACK %d NAK %d RNR %d other\n", sum.DataIn, sum.Copies, sum.FeedbackIn, sum.FeedbackOut, sent.ack, sent.nak, sent.rnr, sent.fatal)
	if sum.Resent+sum.NotRetained+sum.Probes+uint64(sent.keepalives) > 0 || retained > 0 {
		fmt.Fprintf(w, "  %d NAKs served, %d probes, %d keepalives, %d copies again, %d frames not retained, %d bytes at most\n", sum.NAKsServed, sum.Probes, sent.keepalives, sum.Resent, sum.NotRetained, retained)
	}
	sep := "  dropped: "
	for r := range NumReasons {
		if k := sum.Drops[r]; k > 0 {
			fmt.Fprintf(w, "%s%v %d", sep, r, k)
			sep = ", "
		}
	}
	if sep == ", " {
		fmt.Fprintln(w)
	}
}

// groupWindow is the window of a network whose sources send WRITEs.
var groupWindow = Window{Base: 1 << 20, Len: 1 << 16, RKey: 7}

// window is that of a host in such a network.
func (h *host) window() Window {
	return Window{Base: uint64(h.id+1) << 32, Len: 1 << 16, RKey: uint32(100 + h.id)}
}

// address makes packet i of a source a WRITE, if its network's sources send WRITEs. A
// message goes to the offset that is the index of its first packet.
func (h *host) address(p *Packet, i int) {
	if !h.n.writes {
		return
	}
	p.Op = map[rocev2.Opcode]rocev2.Opcode{
		rocev2.SendFirst: rocev2.WriteFirst, rocev2.SendMiddle: rocev2.WriteMiddle, rocev2.SendLast: rocev2.WriteLast, rocev2.SendOnly: rocev2.WriteOnly,
	}[p.Op]
	if !p.Op.Is(rocev2.OpRETH) {
		return
	}
	p.VA, p.RKey, p.DMALen = groupWindow.Base+uint64(i), groupWindow.RKey, uint32(p.Payload)
	for j := i; !h.ops[j].Is(rocev2.OpEnd); j++ {
		p.DMALen += 256
	}
	if !p.Op.Is(rocev2.OpEnd) {
		p.DMALen -= 256 - 10 // the payload of the last packet
	}
}

// checkWrite checks that the copy of a WRITE goes to the same offset in the window of h.
func (n *network) checkWrite(h *host, c *Copy) {
	if p := &n.frames[c.Frame].p; n.writes && p.Op.Is(rocev2.OpRETH) {
		if w := h.window(); c.Flags&SetRETH == 0 || c.RKey != w.RKey || c.VA-w.Base != p.VA-groupWindow.Base {
			n.tb.Fatalf("R27: the copy of a WRITE to %x is for %x, R_Key %d, of host %d: %+v", p.VA, c.VA, c.RKey, h.id, w)
		}
	} else if c.Flags&^SetAckReq != 0 {
		n.tb.Fatalf("R27: a copy that is no WRITE is rewritten: %+v", c)
	}
}

// congests makes h report congestion now and then: by a CNP, or by its next
// acknowledgement.
func (h *host) congests() {
	if h.n.congested == 0 || h.n.rng(h.n.congested) > 0 {
		return
	}
	if h.n.rng(2) == 0 {
		h.marked = true
		return
	}
	p := Packet{Group: groupIP, Src: h.ip, DestQP: groupQPN, Op: rocev2.CNP, BECN: true}
	h.n.carry(h.up(), true, func() { h.n.input(h.node, p) })
}
