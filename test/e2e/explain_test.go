// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// TestExplainedPacketsDoIt explains packets and sends them afterwards: the frames that were said come
// to the hosts, with the fields that were said, and the reason that was said is counted. Before that,
// nothing has changed.
func TestExplainedPacketsDoIt(t *testing.T) {
	inNetworks(t, 3, 0, func(t *testing.T, c rigConfig) {
		r := newRig(t, c)
		r.connect()
		if err := r.engine.Register(r.registration()); err != nil {
			t.Fatal(err)
		}
		f := newForger(r)
		var taps []*tap
		for i := range r.hosts {
			taps = append(taps, r.from(i))
		}
		write := func(psn *uint32) *api.ExplainPacket {
			return &api.ExplainPacket{From: r.hosts[0].ip, Op: "write-only", AckReq: true, PSN: psn}
		}
		until(t, "the receivers are verified", func() bool {
			x := r.explain(write(nil))
			return x.Reason == "" && len(x.Sent) == 2
		})
		first := r.hosts[0].qp.Info().SQPSN
		acked := func(psn rocev2.PSN) func() bool {
			return func() bool {
				a, err := r.engine.ExplainACK(r.group)
				return err == nil && len(a.Waits) == 0 && a.Now.AckPSN == api.PSN(psn)
			}
		}
		for _, s := range []struct {
			what    string
			packet  *api.ExplainPacket
			from    int // host whose link it comes from
			frame   []byte
			verdict string
			reason  string
		}{
			{"a WRITE", write(nil), 0, f.write(0, first), "forwarded", ""},
			{"the same again", write(new(uint32(first))), 0, f.write(0, first), "answered", "duplicate_data"},
			{"the next one", write(nil), 0, f.write(0, first.Next()), "forwarded", ""},
			{"a WRITE to another queue pair", &api.ExplainPacket{From: r.hosts[0].ip, Op: "write-only", QPN: new(uint32(0x99))}, 0,
				f.packet(0, rocev2.Packet{Op: rocev2.WriteOnly, DestQP: 0x99, PSN: first.Add(2), VA: groupBase, RKey: groupRKey, DMALen: 64}, 64), "dropped", "wrong_qpn"},
			{"a READ", &api.ExplainPacket{From: r.hosts[0].ip, Op: "read-request"}, 0,
				f.packet(0, rocev2.Packet{Op: rocev2.ReadRequest, PSN: first.Add(2), VA: groupBase, RKey: groupRKey, DMALen: 64}, 0), "answered", "not_multicastable"},
			{"a WRITE by another port", &api.ExplainPacket{From: r.hosts[0].ip, Op: "write-only", Port: r.ports()[1].Name}, 1, f.write(0, first.Add(2)), "dropped", "source_guard"},
		} {
			before := r.groupText()
			x := r.explain(s.packet)
			if x.Verdict != s.verdict || x.Reason != s.reason || len(x.Steps) == 0 {
				t.Fatalf("%s: %s, %s; want %s, %s: %v", s.what, x.Verdict, x.Reason, s.verdict, s.reason, x.Steps)
			}
			if after := r.groupText(); after != before {
				t.Fatalf("%s: the explanation has changed the group:\n%s\n%s", s.what, before, after)
			}
			counted := r.unserved(s.reason)
			taps[s.from].send(s.frame)
			for i := range x.Sent {
				r.expectSaid(s.what, taps, &x.Sent[i])
			}
			if s.reason != "" {
				until(t, s.what+" is counted as "+s.reason, func() bool { return r.unserved(s.reason) > counted })
			}
			if s.verdict == "forwarded" {
				until(t, s.what+" is acknowledged", acked(rocev2.PSN(x.After.NextPSN).Prev()))
			}
		}
	})
}

// TestExplainedWait: the queue pair of one receiver is not connected, so that the group's first
// message waits for it. The explanations of the message and of its acknowledgement name that receiver
// and the rules; when it is connected, they do not.
func TestExplainedWait(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}, policy: api.PolicyStrict})
	late := r.hosts[2]
	r.hosts = r.hosts[:2]
	r.connect()
	r.hosts = append(r.hosts, late)
	if err := r.engine.Register(r.registration()); err != nil {
		t.Fatal(err)
	}
	write := &api.ExplainPacket{From: r.hosts[0].ip, Op: "write-only", AckReq: true}
	if x := r.explain(write); x.Reason != "awaits_verification" || len(x.Sent) != 0 {
		t.Fatalf("%+v", x)
	}
	f := newForger(r)
	r.from(0).send(f.write(0, r.hosts[0].qp.Info().SQPSN))
	names := func() bool {
		a, err := r.engine.ExplainACK(r.group)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range a.Steps {
			if slices.Contains(s.Rules, "R53") && strings.Contains(s.Text, late.ip.String()) {
				return true
			}
		}
		return false
	}
	until(t, "the receiver that is not connected is named", names)
	r.hosts = []*rigHost{late}
	r.connect()
	until(t, "the message is forwarded", func() bool { x := r.explain(write); return x.Reason == "" && len(x.Sent) == 2 && !names() })
}

// explain explains a packet for the rig's group.
func (r *rig) explain(p *api.ExplainPacket) *api.Explanation {
	r.t.Helper()
	x, err := r.engine.Explain(r.group, p)
	if err != nil {
		r.t.Fatal(err)
	}
	return x
}

// groupText is the state of the rig's group, without what a lease or a keepalive changes.
func (r *rig) groupText() string {
	r.t.Helper()
	g, err := r.engine.Group(r.group)
	if err != nil {
		r.t.Fatal(err)
	}
	if g.FastPath != nil {
		g.FastPath.Since = time.Time{} // the value is computed anew for each answer, from two clocks
	}
	b, err := json.Marshal(g)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// unserved returns how many packets the switch has counted for a reason.
func (r *rig) unserved(reason string) uint64 {
	r.t.Helper()
	s, err := r.engine.Stats()
	if err != nil {
		r.t.Fatal(err)
	}
	return s.Unserved(reason)
}

// expectSaid waits until a packet that was said to leave has come to its host, and compares its
// fields.
func (r *rig) expectSaid(what string, taps []*tap, s *api.ExplainedSend) {
	r.t.Helper()
	if s.Lost != "" || s.Kind == "resend" {
		r.t.Fatalf("%s: %+v", what, s)
	}
	host := -1
	for i, h := range r.hosts {
		if h.ip == s.Member {
			host = i
		}
	}
	if host < 0 {
		r.t.Fatalf("%s: a packet for %s", what, s.Member)
	}
	fields := func(c *captured) string {
		b := c.BTH()
		t := fmt.Sprintf("%v to %v, %v to %v, %s, QPN %06x, PSN %06x", c.Eth().Src(), c.Eth().Dst(), c.Src(), c.Dst(), b.Opcode().Name(), uint32(b.DestQP()), uint32(b.PSN()))
		switch {
		case c.Op.Is(rocev2.OpRETH):
			t += fmt.Sprintf(", VA %x", c.RETH().VA())
		case c.Op.Is(rocev2.OpAETH):
			t += fmt.Sprintf(", syndrome %02x", uint8(c.AETH().Syndrome()))
		}
		return t
	}
	said := fmt.Sprintf("%v to %v, %v to %v, %s, QPN %06x, PSN %06x", s.SrcMAC, s.DstMAC, s.Src, s.Dst, s.Op, uint32(s.QPN), uint32(s.PSN))
	if s.Syndrome != nil {
		said += fmt.Sprintf(", syndrome %02x", *s.Syndrome)
	} else {
		said += fmt.Sprintf(", VA %x", s.VA)
	}
	var seen []string
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		c := taps[host].next()
		if c == nil || c.Kind != rocev2.KindRoCE {
			continue
		}
		if got := fields(c); got == said && c.VerifyICRC() {
			return
		} else {
			seen = append(seen, got)
		}
	}
	r.t.Fatalf("%s: said is\n%s\nto host %d came\n%v", what, said, host, seen)
}
