// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"net/netip"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/api"
)

// Explain implements api.Backend: whatever the packet is, one copy of it goes out, one is lost at a
// port that is down, one goes by XDP to another switch, one packet is repaired, and an ACK is due.
func (b *Backend) Explain(group netip.Addr, p *api.ExplainPacket) (*api.Explanation, error) {
	g, err := b.Group(group)
	if err != nil {
		return nil, err
	}
	ip := netip.MustParseAddr
	syndrome := uint8(0x1F)
	x := &api.Explanation{
		Group: group, Verdict: "forwarded",
		Packet: api.ExplainedPacket{From: p.From, Port: "p1", Op: strings.ToUpper(strings.ReplaceAll(p.Op, "-", "_")), QPN: g.QPN, PSN: g.NextPSN, AckReq: p.AckReq, BECN: p.BECN, BadICRC: p.BadICRC, Payload: 1024},
		Steps: []api.ExplainStep{
			{Rules: []string{"R22"}, Text: "WRITE_MIDDLE is a request: data of a member, for all other members."},
			{Rules: []string{"R17"}, Text: "10.77.0.1 is the group's source. All before 0xffffff is acknowledged, and 17 packets are in flight, up to 0x00000f."},
			{Rules: []string{}, Text: "A fact that follows from no rule."},
			{Rules: []string{"R18", "R24", "R27"}, Text: "A copy to 10.77.0.2: PSN 0x000200 in its numbering, VA 0x5000 and R_Key of its window."},
		},
		Sent: []api.ExplainedSend{
			{Kind: "feedback", Member: ip("10.77.0.1"), Port: "p1", PSN: 0xF, Op: "ACKNOWLEDGE", SrcMAC: "02:00:00:00:01:01", DstMAC: "02:00:00:00:00:01", Src: group, Dst: ip("10.77.0.1"), QPN: 0x11, Syndrome: &syndrome, MSN: 7, Bytes: 62},
			{Kind: "copy", Member: ip("10.77.0.2"), Port: "p2", PSN: 0x200, Op: "WRITE_MIDDLE", SrcMAC: "02:00:00:00:01:02", DstMAC: "02:00:00:00:00:02", VLAN: 42, Src: group, Dst: ip("10.77.0.2"), QPN: 0x12, AckReq: true, VA: 0x5000, Bytes: 1086},
			{Kind: "copy", Member: ip("10.77.0.3"), Port: "p2", PSN: 0x300, Lost: "port_down"},
			{Kind: "copy", Switch: "5c1", Port: "p2", PSN: 0x10, FastPath: true},
			{Kind: "resend", Member: ip("10.77.0.2"), Port: "p2", PSN: 0x1FF},
		},
		Before: api.ExplainedState{State: g.State, Source: g.Source, AckPSN: g.AckPSN, NextPSN: g.NextPSN},
		After:  api.ExplainedState{State: g.State, Source: g.Source, AckPSN: g.AckPSN, NextPSN: g.NextPSN + 1},
	}
	if p.PSN != nil {
		x.Packet.PSN = api.PSN(*p.PSN)
	}
	if p.RKey != nil {
		x.Verdict, x.Reason = "answered", "window_violation"
	}
	return x, nil
}

// ExplainACK implements api.Backend: a member is silent, and those behind another switch are slow.
func (b *Backend) ExplainACK(group netip.Addr) (*api.ACKExplanation, error) {
	g, err := b.Group(group)
	if err != nil {
		return nil, err
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 250_000_000, time.UTC)
	since, in := at.Add(-1500*time.Microsecond), 0.0985
	a := &api.ACKExplanation{
		Group: group, Time: at, Now: api.ExplainedState{State: g.State, Source: g.Source, AckPSN: g.AckPSN, NextPSN: g.NextPSN}, Waits: []api.ACKWait{},
		Steps: []api.ExplainStep{{Rules: []string{"R17"}, Text: "The group has no source yet: no acknowledgement is due."}},
	}
	if !g.Source.IsValid() {
		return a, nil
	}
	a.Steps = []api.ExplainStep{{Rules: []string{"R01", "R14"}, Text: "The source 10.77.0.1 has all before 0xffffff acknowledged; 17 packets are not, up to 0x00000f."}}
	a.Waits = []api.ACKWait{{
		Members: []netip.Addr{netip.MustParseAddr("10.77.0.3")}, Port: "p2", PSN: 0xFFFFFF, Lag: 17, Since: &since, Seconds: 0.0015,
		Why: []api.ExplainStep{{Rules: []string{"R02"}, Text: "It was sent all up to 0x00000f, and has said nothing of 0xffffff: the packet or the ACK is on its way or was lost, or the host is slow."}},
		Ends: []api.ACKWaitEnd{
			{ExplainStep: api.ExplainStep{Rules: []string{"R01", "R03"}, Text: "Its ACK of 0xffffff or a later PSN."}},
			{Seconds: &in, ExplainStep: api.ExplainStep{Rules: []string{"R23", "R39"}, Text: "If it stays silent, and another receiver does not, it is removed, and no longer waited for."}},
		},
	}, {
		Members: []netip.Addr{netip.MustParseAddr("10.77.1.2"), netip.MustParseAddr("10.77.1.3")}, Switch: "5c1", API: "10.77.1.1:4798", Port: "p2", PSN: 0, Lag: 16,
		Why:  []api.ExplainStep{{Rules: []string{"R13"}, Text: "It stands for all members behind another switch."}},
		Ends: []api.ACKWaitEnd{},
	}}
	return a, nil
}
