// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/rocev2"
)

// told is the last envelope of a kind that the switch has sent to a host, with its
// destination.
type told struct {
	envelope.Message
	to netip.AddrPort
}

// hears returns the next envelope of a type that the host of a tap receives.
func (p *tap) hears(t envelope.Type) (x told) {
	p.t.Helper()
	p.expect(t.String(), func(c *captured) bool {
		if c.Kind != rocev2.KindUDP || c.UDP().SrcPort() != envelope.DefaultPort {
			return false
		}
		m, err := envelope.Open(c.UDPPayload(), testAuth().Keys, false)
		x = told{m, netip.AddrPortFrom(c.Dst(), c.UDP().DstPort())}
		return err == nil && m.Type == t
	})
	return x
}

// says builds the frame of an envelope to the group in the name of from, with the
// attacker's MAC address.
func (a *attacker) says(from netip.AddrPort, h envelope.Header, body envelope.Body) []byte {
	a.r.t.Helper()
	h.ReplyTo, h.Group, h.Total = from, a.r.group, 1
	auth := testAuth()
	data, err := envelope.Append(nil, &envelope.Message{Header: h, Body: body}, auth.Keys, auth.Send)
	if err != nil {
		a.r.t.Fatal(err)
	}
	p := a.groupPath(from.Addr())
	p.SrcPort = from.Port()
	b := make([]byte, 2048)
	return b[:rocev2.BuildUDP(b, &p, envelope.DefaultPort, data)]
}

// A host with the group's key, and the cookies of others' addresses, sends envelopes in
// the name of a member and of the master from its own port, with its own MAC address
// and with theirs: they are counted and logged once, and the group goes on. The same
// envelope from the member's own port counts.
func TestImpostorsEnvelopes(t *testing.T) {
	inNetworks(t, 3, 1, func(t *testing.T, c rigConfig) {
		c.memory = 128 << 10
		r := newRig(t, c)
		wires := []*tap{r.from(0), r.from(2)} // as if it had been at these addresses for a moment
		groups := r.joinByMaster(nil)
		master, member := wires[0].hears(envelope.TypeAccept), wires[1].hears(envelope.TypeNotify)
		v := r.hosts[2]
		key := envelope.MemberKey{IP: v.ip, QPN: v.qp.Info().QPN}
		header := func(x *told) envelope.Header {
			return envelope.Header{Epoch: x.Epoch, Instance: x.Instance, Transaction: x.Transaction + 1}
		}
		a := r.attacker(0)
		leave := a.says(member.to, header(&member), &envelope.Leave{Member: key})
		frames := [][]byte{
			leave, a.says(master.to, header(&master), &envelope.Delete{}), a.says(master.to, header(&master), &envelope.Leave{Member: key}),
			a.says(master.to, header(&master), &envelope.Renew{}),
		}
		for i, h := range []*rigHost{v, r.hosts[0]} { // with their own MAC addresses
			frames = append(frames, slices.Clone(frames[i]))
			copy(frames[len(frames)-1][6:], h.MAC)
		}
		refused := func(n int) {
			t.Helper()
			until(t, "envelope_wrong_location", func() bool { return r.drops()["envelope_wrong_location"] == uint64(n) })
		}
		a.send(leave)
		refused(1)
		for range 3 {
			for _, f := range frames {
				a.send(f)
			}
		}
		refused(1 + 3*len(frames))
		r.sendTo(groups)
		if g, err := r.engine.Group(r.group); err != nil || len(g.Members) != 3 || len(g.Former) != 0 {
			t.Fatalf("the group: %+v, %v", g, err)
		}
		var said []string
		r.notes.Lock()
		for _, l := range r.notes.lines {
			if strings.Contains(l, "wrong_location") {
				said = append(said, l)
			}
		}
		r.notes.Unlock()
		if len(said) != 1 {
			t.Fatalf("the switch says %q", said)
		}
		for _, word := range []string{"true envelope refused", "Leave in the name of member " + v.ip.String(), a.Port, rocev2.MAC(a.MAC).String(), "who is at " + r.placeOf(v)} {
			if !strings.Contains(said[0], word) {
				t.Errorf("no %q in %s", word, said[0])
			}
		}
		mac := r.portMAC(2)
		copy(leave, mac[:])
		copy(leave[6:], v.MAC)
		wires[1].send(leave)
		if e := awaitEvent(t, groups[0], endpoint.MemberLeft); e.Member != v.ip || e.Reason != envelope.Left {
			t.Errorf("from its own port: the master heard %+v", e)
		}
	})
}
