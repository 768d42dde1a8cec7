// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/observe/watch"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Explanations for operators. The control loop has the group's worker copy its state; the rest is
// work of the goroutine that serves the request.

// explainedGroup is a copy of a group's state, with what is needed to name its parts.
type explainedGroup struct {
	*dataplane.GroupCopy
	ip       netip.Addr
	window   mcast.Window
	pmtu     int
	status   mcast.GroupStatus
	ports    []string // names, by index
	down     []bool   // true: the port is down; by index of a port
	slowed   []string // sentences about the members that cost the group time
	evicted  []api.FormerMember
	switches map[mcast.Neighbor]api.TreeLeg
}

// copyForExplanation copies the state of a group.
func (e *Engine) copyForExplanation(ip netip.Addr) (x *explainedGroup, err error) {
	if !e.control.read(func() {
		g := e.control.dir.groups[ip]
		if g == nil {
			err = unknownGroup(ip)
			return
		}
		x = &explainedGroup{ip: ip, window: g.reg.Window, pmtu: g.reg.PathMTU, switches: make(map[mcast.Neighbor]api.TreeLeg)}
		for _, p := range e.control.ports {
			x.ports, x.down = append(x.ports, p.Name), append(x.down, !p.reportedUp)
		}
		for i := range g.slots {
			if n := g.slots[i].behind; n != envelope.NoNeighbour {
				x.switches[n] = e.control.switches.DescribeLeg(n)
			}
		}
		x.evicted = watch.Evicted(g.former, time.Now())
		if x.GroupCopy, err = g.handle.Copy(); err != nil {
			err = errStopped
			return
		}
		b := x.GroupCopy.Blamed()
		for i := range b.Count {
			if s := g.liveSlot(b.Members[i].Member); s != nil {
				x.slowed = append(x.slowed, fmt.Sprintf("%s %s. %s%s.", s.record.IP, blamed(&b.Members[i]), blameText(&b.Members[i]), e.control.placeText(s)))
			}
		}
	}) {
		return nil, errStopped
	}
	if err == nil {
		x.status = x.Status()
	}
	return x, err
}

// Explain implements api.Backend.
func (e *Engine) Explain(ip netip.Addr, p *api.ExplainPacket) (*api.Explanation, error) {
	g, err := e.copyForExplanation(ip)
	if err != nil {
		return nil, err
	}
	in, err := g.packet(p)
	if err != nil {
		return nil, err
	}
	x := g.Explain(in)
	k := &x.Packet
	a := &api.Explanation{
		Group: ip, Verdict: x.Verdict.String(), Steps: steps(x.Steps), Sent: []api.ExplainedSend{}, Before: g.state(&x.Before), After: g.state(&x.After),
		Packet: api.ExplainedPacket{
			From: k.Src, Port: g.portName(x.Port), Op: k.Op.Name(), QPN: api.QPN(k.DestQP), PSN: api.PSN(k.PSN), AckReq: k.AckReq, BECN: k.BECN, BadICRC: p.BadICRC,
			Payload: int(k.Payload), VA: k.VA, DMALen: k.DMALen, Syndrome: uint8(k.Syndrome), MSN: uint32(k.MSN),
		},
	}
	switch {
	case x.Refused != "":
		a.Reason = x.Refused
	case x.BadICRC:
		a.Reason = "bad_icrc"
	case x.Reason != mcast.None:
		a.Reason = x.Reason.String()
	}
	for i := range x.Frames {
		a.Sent = append(a.Sent, g.sent(&x.Frames[i]))
	}
	return a, nil
}

// defaultPayload is the payload of the only packet of a message, in bytes, if none is given.
const defaultPayload = 64

// packet makes the packet that p describes.
func (g *explainedGroup) packet(p *api.ExplainPacket) (*dataplane.ExplainedPacket, error) {
	op, err := rocev2.ParseOpcode(p.Op)
	if err != nil {
		return nil, err
	}
	in := &dataplane.ExplainedPacket{Port: -1, KnownPSN: p.PSN != nil, KnownPayload: p.Payload != nil, AnyQPN: p.QPN == nil}
	if p.Port != "" {
		if in.Port = slices.Index(g.ports, p.Port); in.Port < 0 {
			return nil, &api.Error{Reason: api.ReasonUnknownPort, Message: fmt.Sprintf("there is no port %.40q: see `gleam port list`", p.Port)}
		}
	}
	k := &in.Packet
	k.Src, k.Op, k.AckReq, k.BECN, k.Verified = p.From, op, p.AckReq, p.BECN, !p.BadICRC
	k.PSN, k.DestQP, k.MSN = rocev2.PSN(value(p.PSN, 0)), rocev2.QPN(value(p.QPN, 0)), rocev2.MSN(value(p.MSN, 0))
	f := op.Flags()
	payload := 0
	switch {
	case f&rocev2.OpRequest == 0 || f&rocev2.OpPayload == 0:
	case f&(rocev2.OpFirst|rocev2.OpMiddle) != 0:
		payload = g.pmtu
	default:
		payload = defaultPayload
	}
	k.Payload = value(p.Payload, uint16(payload))
	if f&rocev2.OpRETH != 0 {
		length := uint32(k.Payload)
		if f&rocev2.OpEnd == 0 {
			length *= 2
		} else if op == rocev2.ReadRequest {
			length = defaultPayload
		}
		k.VA, k.DMALen = value(p.VA, g.window.Base), value(p.DMALen, length)
	}
	if f&(rocev2.OpRETH|rocev2.OpIETH) != 0 {
		k.RKey = value(p.RKey, g.window.RKey)
	}
	if f&rocev2.OpAETH != 0 {
		k.Syndrome = rocev2.Syndrome(value(p.Syndrome, uint8(rocev2.SyndromeACK)))
	}
	if p.From.Is4() != g.ip.Is4() {
		return nil, &api.Error{Reason: api.ReasonBadRequest, Message: fmt.Sprintf("%s and the group %s are of two families of addresses", p.From, g.ip)}
	}
	return in, nil
}

// value returns *p, or otherwise if p is nil.
func value[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

func steps(list []mcast.Step) []api.ExplainStep {
	out := []api.ExplainStep{}
	for _, s := range list {
		out = append(out, step(s))
	}
	return out
}

func step(s mcast.Step) api.ExplainStep {
	if s.Rules == nil {
		s.Rules = []string{}
	}
	return api.ExplainStep{Rules: s.Rules, Text: s.Text}
}

// portName returns the name of port i; "" of -1.
func (g *explainedGroup) portName(i int) string {
	if i < 0 || i >= len(g.ports) {
		return ""
	}
	return g.ports[i]
}

// state is the API's view of the group in state st.
func (g *explainedGroup) state(st *mcast.GroupStatus) api.ExplainedState {
	s := api.ExplainedState{State: "idle"}
	if st.HasSource {
		s.State, s.AckPSN, s.NextPSN = "running", api.PSN(st.Acked), api.PSN(st.Nxt)
		s.Source = st.Members[st.Source].IP
	}
	if st.Failed {
		s.State = "failed"
	}
	return s
}

// memberOf returns the member that a leg leads to.
func (g *explainedGroup) memberOf(leg mcast.LegID) netip.Addr {
	for i := range g.status.Members {
		if m := &g.status.Members[i]; m.Leg == leg && m.Live {
			return m.IP
		}
	}
	return netip.Addr{}
}

// sent is the API's view of a frame that would leave.
func (g *explainedGroup) sent(f *dataplane.ExplainedFrame) api.ExplainedSend {
	a := api.ExplainedSend{Kind: "copy", Port: g.portName(f.Port), Lost: f.Lost, FastPath: f.ByXDP, PSN: api.PSN(f.PSN)}
	switch {
	case f.Feedback:
		a.Kind, a.Member = "feedback", g.status.Members[f.Member].IP
	case f.Behind == 0:
		a.Member = g.memberOf(f.Leg)
	}
	if f.Behind != 0 {
		a.Switch = g.switches[f.Behind].Switch
	}
	var d rocev2.Frame
	if f.Bytes == nil || rocev2.Decode(f.Bytes, &d) != rocev2.OK {
		if !f.Feedback && f.Lost == "" {
			a.Kind = "resend"
		}
		return a
	}
	bth := d.BTH()
	_, tci := d.VLAN()
	a.Op, a.SrcMAC, a.DstMAC, a.VLAN, a.Src, a.Dst = bth.Opcode().Name(), d.Eth().Src().String(), d.Eth().Dst().String(), tci&0x0FFF, d.Src(), d.Dst()
	a.QPN, a.PSN, a.AckReq, a.BECN, a.Bytes = api.QPN(bth.DestQP()), api.PSN(bth.PSN()), bth.AckReq(), bth.BECN(), len(f.Bytes)
	switch {
	case d.Op.Is(rocev2.OpRETH):
		a.VA = d.RETH().VA()
	case d.Op.Is(rocev2.OpAETH):
		a.Syndrome, a.MSN = new(uint8(d.AETH().Syndrome())), uint32(d.AETH().MSN())
	}
	return a
}

// ExplainACK implements api.Backend.
func (e *Engine) ExplainACK(ip netip.Addr) (*api.ACKExplanation, error) {
	g, err := e.copyForExplanation(ip)
	if err != nil {
		return nil, err
	}
	x, now, stalled := g.ExplainACK()
	a := &api.ACKExplanation{Group: ip, Time: time.Now(), Now: g.state(&g.status), Steps: steps(x.Steps), Waits: []api.ACKWait{}}
	a.Steps = append(a.Steps, g.lately()...)
	for i := range x.Waits {
		w := &x.Waits[i]
		behind, port := g.Leg(w.Leg)
		v := api.ACKWait{Members: []netip.Addr{}, Port: g.portName(port), PSN: api.PSN(w.PSN), Lag: int(w.Behind), Why: steps(w.Why), Ends: []api.ACKWaitEnd{}}
		if behind != 0 {
			v.Switch, v.API = g.switches[behind].Switch, g.switches[behind].API
		}
		for k := range g.status.Members {
			if m := &g.status.Members[k]; m.Leg == w.Leg && m.Live {
				v.Members = append(v.Members, m.IP)
			}
		}
		if port >= 0 && g.down[port] {
			v.Why = append([]api.ExplainStep{{Rules: []string{}, Text: fmt.Sprintf("Port %s is down: what is sent there is dropped, and counted as port_down.", v.Port)}}, v.Why...)
		}
		if stalled > 0 {
			v.Since, v.Seconds = new(a.Time.Add(-stalled)), stalled.Seconds()
		}
		for _, end := range w.Ends {
			s := api.ACKWaitEnd{ExplainStep: step(end.Step)}
			if end.At != 0 {
				s.Seconds = new(max(0, end.At-now).Seconds())
			}
			v.Ends = append(v.Ends, s)
		}
		a.Waits = append(a.Waits, v)
	}
	return a, nil
}

// lately says which members have delayed the group for some time, or were removed because of that.
func (g *explainedGroup) lately() (list []api.ExplainStep) {
	add := func(rules []string, format string, args ...any) {
		list = append(list, api.ExplainStep{Rules: rules, Text: fmt.Sprintf(format, args...)})
	}
	for _, s := range g.slowed {
		add([]string{}, "%s", s)
	}
	for i := range g.evicted {
		m := &g.evicted[i]
		at := ""
		if m.Port != "" {
			at = " at port " + m.Port
		}
		add([]string{}, "%s%s was %s, at %s: the ACK does not wait for it any more.", m.IP, at, m.Reason, m.Time.Local().Format(time.TimeOnly))
	}
	return list
}
