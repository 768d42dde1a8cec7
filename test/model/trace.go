// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/model/notation"
)

// recorder writes the steps as transcripts in the language of mcast/transcript_test.go,
// one for each switch.
type recorder struct {
	text  []strings.Builder
	now   []time.Duration // the time by switch
	steps int
}

// replay takes w along a path from the first state.
func (s *search) replay(w *World, as []action) {
	w.decode(s.root)
	for _, a := range as {
		w.do(a)
	}
}

// trace replays a path and records it.
func (s *search) trace(w *World, as []action) *Violation {
	w.recorder = newRecorder(w)
	s.replay(w, as)
	v := &Violation{Switch: -1, Steps: len(as)}
	if w.wrong != nil {
		*v = Violation{What: w.wrong.What, Switch: w.wrong.Switch, Steps: len(as)}
	}
	for i := range w.recorder.text {
		v.Trace = append(v.Trace, w.recorder.text[i].String())
	}
	if v.Switch > 0 {
		v.Trace[0], v.Trace[v.Switch] = v.Trace[v.Switch], v.Trace[0]
	}
	w.recorder = nil
	return v
}

func newRecorder(w *World) *recorder {
	r := &recorder{text: make([]strings.Builder, len(w.switches)), now: make([]time.Duration, len(w.switches))}
	for sw := range r.text {
		r.now[sw] = w.now
		if w.prologue != nil {
			r.text[sw].WriteString(w.prologue[sw])
			continue
		}
		fmt.Fprintf(&r.text[sw], "# Model %s, switch %d of %d.\n# %v\n\n", w.cfg.Name, sw, len(w.switches), w.cfg)
		r.group(w, sw, &w.switches[sw].spec)
		r.figure(sw, w, &w.switches[sw].spec)
		fmt.Fprint(&r.text[sw], "\n")
	}
	return r
}

func (r *recorder) group(w *World, sw int, spec *mcast.GroupSpec) {
	t := &r.text[sw]
	var all []string
	for i := range spec.Members {
		all = append(all, nameOf(&spec.Members[i]))
	}
	_, behind := membersAt(spec)
	fmt.Fprintf(t, "group members=(%s) pmtu=%d", strings.Join(all, ","), spec.PathMTU)
	for n := mcast.Neighbor(1); behind[n] != nil; n++ {
		key := "fwd"
		if n > 1 {
			key = fmt.Sprintf("fwd%d", n)
		}
		fmt.Fprintf(t, " %s=(%s)", key, strings.Join(behind[n], ","))
	}
	switch spec.Policy {
	case mcast.Evict:
		fmt.Fprint(t, " policy=evict")
	case mcast.Quorum:
		fmt.Fprintf(t, " policy=quorum:%d", spec.Quorum)
	}
	if spec.DeadAfter > 0 {
		fmt.Fprintf(t, " dead=%v", spec.DeadAfter)
	}
	if w.cfg.Tree != Flat {
		fmt.Fprintf(t, " reports parent=%d", spec.Tree.Parent)
		if spec.Tree.Running {
			fmt.Fprint(t, " running")
		}
	}
	if w.cfg.Repair > 0 {
		fmt.Fprintf(t, " repair=(%d,%v,%d)", w.cfg.Repair, spec.Repair.Timeout, spec.Repair.Tries)
		if w.cfg.PortRoom > 0 {
			fmt.Fprintf(t, " room=%d", w.cfg.PortRoom)
		}
	}
	if f := &spec.FastPath; f.Slots > 0 {
		fmt.Fprintf(t, " fast=(%d,%v,%v)", f.Slots, f.Drain, f.Backoff)
	}
	if spec.AckEvery > 0 {
		fmt.Fprintf(t, " ackevery=%d", spec.AckEvery)
	}
	if spec.PSNProbe > 0 {
		fmt.Fprintf(t, " verify=%v", spec.PSNProbe)
	}
	if spec.Stored {
		fmt.Fprint(t, " stored")
	}
	if w.stepOp == "restart" {
		fmt.Fprint(t, " anew")
	}
	switch p := spec.Resume; {
	case p == nil:
	case p.HasSource:
		fmt.Fprintf(t, " resume=%s", nameOf(&spec.Members[p.Source]))
	default:
		fmt.Fprint(t, " resume=-")
	}
	if spec.Window.Len > 0 {
		fmt.Fprintf(t, " window=(%x,%x,%x)", spec.Window.Base, spec.Window.Len, spec.Window.RKey)
	}
	fmt.Fprintln(t)
	for i := range spec.Members {
		m := &spec.Members[i]
		fmt.Fprintf(t, "%s sq=%s rq=%s", nameOf(m), notation.PSN(m.SQPSN), notation.PSN(m.RQPSN))
		if p := spec.Resume; p != nil && p.Members[i].Known {
			fmt.Fprintf(t, " at=%s,%s", notation.PSN(p.Members[i].Send), notation.PSN(p.Members[i].Receive))
		}
		if p := spec.Resume; p != nil && p.Members[i].Joining {
			fmt.Fprint(t, " joining")
		}
		if m.Window.Len > 0 {
			fmt.Fprintf(t, " window=%x,%x,%x", m.Window.Base, m.Window.Len, m.Window.RKey)
		}
		fmt.Fprintln(t)
	}
	fmt.Fprint(t, "----\n")
}

// membersAt returns the names of a switch's own members, and of those behind each neighbour.
func membersAt(spec *mcast.GroupSpec) (own []string, behind map[mcast.Neighbor][]string) {
	behind = map[mcast.Neighbor][]string{}
	for i := range spec.Members {
		m := &spec.Members[i]
		if n := spec.Legs[m.Leg].Neighbor; n != 0 {
			behind[n] = append(behind[n], nameOf(m))
		} else {
			own = append(own, nameOf(m))
		}
	}
	return own, behind
}

// step records the next step as a comment.
func (r *recorder) step(w *World, a action) {
	r.steps++
	i := a.arg()
	var s string
	switch a.kind() {
	case fire:
		s = w.nodeName(node(i)) + ": a timer fires"
	case post:
		s = name(i) + " posts a receive"
	case start:
		s = name(i) + " begins to send"
	case die:
		s = name(i) + " dies"
	case change:
		s = fmt.Sprintf("%v at switch %d", &w.cfg.Changes[w.switches[i].form.changed], i)
	case restart:
		s = fmt.Sprintf("switch %d restarts", i&3)
		if i&withNewer != 0 {
			s += ", and what it was writing is durable"
		}
		if i&withLoss != 0 {
			s += ", and loses what comes"
		}
	case read:
		s = fmt.Sprintf("switch %d begins to store", i)
	case store:
		s = fmt.Sprintf("switch %d has stored", i&3)
		if i&fileFails != 0 {
			s += ", it believes"
		}
	case meet:
		s = fmt.Sprintf("%s begins another session with %s", w.nodeName(w.links[i].to), w.nodeName(w.links[i].from))
	case fast, work:
		s = w.fastName(a)
	case portFull:
		s = fmt.Sprintf("the queue toward %s is full", w.nodeName(w.links[i].to))
	default:
		k := 0
		if a.kind() == reorder {
			k = 1
		}
		l := &w.links[i]
		s = map[action]string{deliver: "", drop: "lost", duplicate: "will come twice", reorder: "overtakes the one before it"}[a.kind()]
		s = strings.TrimSpace(fmt.Sprintf("%s to %s: %s %s", w.nodeName(l.from), w.nodeName(l.to), w.packetName(l, &l.q[k]), s))
	}
	for sw := range r.text {
		fmt.Fprintf(&r.text[sw], "# %d. %s\n", r.steps, s)
	}
}

// hostOf returns the host of a member.
func hostOf(m *mcast.MemberSpec) int {
	ip := m.IP.As4()
	return int(ip[3]) - 1
}

// nameOf returns its name.
func nameOf(m *mcast.MemberSpec) string { return name(hostOf(m)) }

var opNames = map[rocev2.Opcode]string{
	rocev2.SendFirst: "SendFirst", rocev2.SendMiddle: "SendMiddle", rocev2.SendLast: "SendLast", rocev2.SendOnly: "SendOnly",
	rocev2.WriteFirst: "WriteFirst", rocev2.WriteMiddle: "WriteMiddle", rocev2.WriteLast: "WriteLast", rocev2.WriteOnly: "WriteOnly",
}

// served records an input of a switch, nil for a deadline, and its output.
func (r *recorder) served(w *World, sw int, in *mcast.Packet, o *mcast.Output) {
	t := &r.text[sw]
	if w.cfg.FastPath > 0 && (in != nil || w.stepOp != "") {
		r.clock(w, sw)
	}
	if later := w.now - r.now[sw]; w.cfg.Repair > 0 || w.cfg.WithDeadAfter || w.cfg.Tree != Flat || w.cfg.Probe {
		r.now[sw] = w.now
		switch {
		case in == nil && w.op == nil && w.stepOp == "" && w.arrived == nil && w.recordSession == 0:
			fmt.Fprintf(t, "time +%v\n----\n", later)
		case later > 0:
			fmt.Fprintf(t, "clock +%v\n----\nnothing\n\n", later)
		}
	}
	switch {
	case w.op != nil:
		r.update(t, w, sw)
	case w.stepOp != "":
		fmt.Fprintf(t, "%s\n----\n", w.stepOp)
	case w.recordSession != 0:
		fmt.Fprintf(t, "session nbr=%d %d\n----\n", w.recordSession, w.sessionNumber)
	case w.arrived != nil:
		r.report(t, w.arrived)
	case in == nil:
	case in.Op == rocev2.Acknowledge:
		r.feedback(t, w, in)
	default:
		fmt.Fprintf(t, "data psn=%s op=%s", notation.PSN(in.PSN), opNames[in.Op])
		if in.Src != hostIP(0) {
			fmt.Fprintf(t, " from=%s", name(int(frameOf(in.Frame).source)))
		}
		if in.AckReq {
			fmt.Fprint(t, " ar")
		}
		if in.DMALen > 0 {
			fmt.Fprintf(t, " va=%x rkey=%x dma=%x", in.VA, in.RKey, in.DMALen)
		}
		if w.inForwarded {
			fmt.Fprint(t, " forwarded")
		}
		r.neighbour(t, in)
	}
	r.output(w, sw, o)
}

func (r *recorder) neighbour(t *strings.Builder, in *mcast.Packet) {
	if in.Neighbor != 0 {
		fmt.Fprintf(t, " nbr=%d", in.Neighbor)
	}
	fmt.Fprint(t, "\n----\n")
}

func (r *recorder) feedback(t *strings.Builder, w *World, in *mcast.Packet) {
	what := strings.ToLower(feedbackName(in.Syndrome))
	if isSelective(in.Syndrome) {
		what = "aeth"
	}
	fmt.Fprintf(t, "%s psn=%s", what, notation.PSN(in.PSN))
	switch {
	case isSelective(in.Syndrome), rank(in.Syndrome) == 3:
		fmt.Fprintf(t, " code=%x", uint8(in.Syndrome))
	case rank(in.Syndrome) == 2:
		fmt.Fprintf(t, " code=%x", uint8(in.Syndrome)&31)
	}
	ip := in.Src.As4()
	fmt.Fprintf(t, " from=%s", name(int(ip[3])-1))
	if w.cfg.Probe {
		fmt.Fprintf(t, " msn=%d", in.MSN)
	}
	r.neighbour(t, in)
}

// output prints an output in the form of mcast's transcripts.
func (r *recorder) output(w *World, sw int, o *mcast.Output) {
	t := &r.text[sw]
	call := notation.Call{First: r.orders(w, sw, o)}
	for i := range o.Copies {
		c := &o.Copies[i]
		x := notation.Copy{Leg: w.legName(sw, c.Leg), PSN: c.PSN}
		switch c.Flags {
		case mcast.SetRETH:
			x.Set = fmt.Sprintf("(va=%x rkey=%x)", c.VA, c.RKey)
		case mcast.SetRETH | mcast.SetAckReq:
			x.Set = fmt.Sprintf("(va=%x rkey=%x ar)", c.VA, c.RKey)
		case mcast.SetAckReq:
			x.Set = "(ar)"
		}
		call.Copies = append(call.Copies, x)
	}
	if len(o.Probes) > 0 {
		var probes []notation.Copy
		for _, p := range o.Probes {
			probes = append(probes, notation.Copy{Leg: w.legName(sw, p.Leg), PSN: p.PSN})
		}
		call.Then = append(call.Then, "probe "+notation.List(probes))
	}
	for i := range o.Feedback {
		f := &o.Feedback[i]
		msn, tag := fmt.Sprintf(" msn=%d", f.MSN), ""
		if w.home[w.switches[sw].host[f.To]] != sw {
			tag = fmt.Sprintf(" tag=%x", uint32(f.MSN))
			msn = tag
		}
		psn, line := notation.PSN(f.PSN), ""
		switch to, k := name(int(f.To)), rank(f.Syndrome); {
		case k == 0 && !isSelective(f.Syndrome):
			line = fmt.Sprintf("ACK %s%s to %s", psn, msn, to)
		case k == 2:
			line = fmt.Sprintf("RNR %s code=%d%s to %s", psn, f.Syndrome&31, tag, to)
		default:
			line = fmt.Sprintf("NAK %s %#x%s to %s", psn, uint8(f.Syndrome), tag, to)
		}
		call.Then = append(call.Then, line)
	}
	for i := range o.Events {
		if line := eventLine(&o.Events[i]); i == 0 && o.Events[i].Kind == mcast.SourceChanged {
			call.First = append(call.First, line)
		} else {
			call.Then = append(call.Then, line)
		}
	}
	if o.Drop != mcast.None {
		call.Then = append(call.Then, fmt.Sprintf("drop: %v", o.Drop))
	}
	if o.Retained {
		call.Kept = append(call.Kept, "kept")
	}
	if len(o.Freed) > 0 {
		call.Kept = append(call.Kept, fmt.Sprintf("released %d", len(o.Freed)))
	}
	for i := range o.Reports {
		call.Last = append(call.Last, reportLine(&o.Reports[i]))
	}
	begin := t.Len()
	if p, ok := w.op.(mcast.PutGroup); ok {
		r.figure(sw, w, &p.Spec)
	}
	var a notation.Answer
	a.Add(&call)
	if a.WriteTo(t); t.Len() == begin {
		fmt.Fprintln(t, "nothing")
	}
	fmt.Fprintln(t)
}

func eventLine(e *mcast.Event) string {
	if e.Kind == mcast.PositionsDue {
		return "event: positions due"
	}
	what := map[mcast.EventKind]string{
		mcast.SourceChanged: "source is", mcast.MemberEvicted: "evicted", mcast.GroupFailed: "group failed by", mcast.SourceRefused: "refused", mcast.SourceConflict: "other source",
	}[e.Kind]
	line := fmt.Sprintf("event: %s %s at %s", what, name(int(e.Member)), notation.PSN(e.PSN))
	if e.Syndrome != 0 {
		line += fmt.Sprintf(", syndrome %#x", uint8(e.Syndrome))
	}
	return line
}

// String describes the violation and the path to it.
func (v *Violation) String() string {
	return fmt.Sprintf("%s\nafter %d steps. The transcript, for mcast/testdata:\n\n%s", v.What, v.Steps, strings.Join(v.Trace, "\n"))
}
