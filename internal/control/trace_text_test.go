// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/dataplane/trace"
	"github.com/gleam-rdma/gleam/docs"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// outsideRules are the reasons of the core that no rule is about: the packet is for no group here, or its
// syndrome says nothing.
var outsideRules = []mcast.Reason{mcast.UnknownGroup, mcast.ReservedSyndrome}

// Each reason of the core names its rules, and these are in docs/AGGREGATION.md; those that are outside the
// rules name none.
func TestRulesOfDrops(t *testing.T) {
	all := map[string]bool{}
	for _, rule := range docs.Rules() {
		all[rule.Name] = true
	}
	for r := mcast.None + 1; r < mcast.NumReasons; r++ {
		rules := reasonsByName()[r.String()].Rules
		if outside := slices.Contains(outsideRules, r); outside == (len(rules) > 0) {
			t.Errorf("%s has the rules %q; outside the rules: %v", r, rules, outside)
		}
		for _, rule := range rules {
			if !all[rule] {
				t.Errorf("%s: there is no rule %s", r, rule)
			}
		}
	}
	for _, r := range dataplane.Reasons() {
		x := &trace.Record{Drop: r.Name}
		if s, _ := traceText(x); !strings.Contains(s, r.Name) || !strings.Contains(s, r.Text) {
			t.Errorf("%s: %s", r.Name, s)
		}
	}
}

func TestTraceText(t *testing.T) {
	group, source, receiver := netip.MustParseAddr("10.9.0.1"), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	data := trace.Header{Src: source, Dst: group, IsRoCE: true, Op: rocev2.WriteOnly, PSN: 0x10, DestQP: 0x4711}
	copied := trace.Header{Src: group, Dst: receiver, IsRoCE: true, Op: rocev2.WriteOnly, PSN: 0x110, DestQP: 0x11}
	ack := func(src, dst netip.Addr, y rocev2.Syndrome) trace.Header {
		return trace.Header{Src: src, Dst: dst, IsRoCE: true, Op: rocev2.Acknowledge, PSN: 0x110, Syndrome: y}
	}
	for _, c := range []struct {
		x     trace.Record
		text  string
		rules string
	}{
		{trace.Record{Header: data, Place: trace.Next, Copies: 2, Flags: trace.Retained}, "new data of the source, 2 copies, in the repair store", "R42"},
		{trace.Record{Header: data, Place: trace.Next, Flags: trace.ByXDP}, "new data of the source, forwarded by XDP, whose copies are not seen here", "R97"},
		{trace.Record{Header: data, Place: trace.OtherSource, Copies: 1}, "data of a member that becomes the source, 1 copy", "R17"},
		{trace.Record{Header: data, Place: trace.OtherSource, Drop: "not_source"}, "data of a member that is not the source, not served: not_source (" + mcast.NotSource.Text() + ")", "R29"},
		{trace.Record{Header: data, Place: trace.Again, Copies: 1}, "data that the source sends again, 1 copy", ""},
		{trace.Record{Header: data, Place: trace.Acked, Drop: "duplicate_data", Feedback: 1}, "data that all receivers have, not served: duplicate_data (" + mcast.DuplicateData.Text() + "), 1 packet of the switch itself", "R12"},
		{trace.Record{Header: ack(receiver, group, rocev2.SyndromeNAKSequence), WasPSN: 0x10, Resent: 3}, "NAK (sequence error) from 10.0.0.2, PSN 0x000010 as the source counts, 3 packets from the repair store", "R18 R43"},
		{trace.Record{Header: trace.Header{Src: source, Dst: group, UDPPort: 4797}}, "a datagram for UDP port 4797", ""},
		{trace.Record{Kind: trace.Copied, Header: copied, Member: receiver, WasPSN: 0x10, WasQP: 0x4711, WasVA: 0x1000, VA: 0x2000, Flags: trace.Translated | trace.NewAddress},
			"copy for 10.0.0.2, QPN 0x004711 -> 0x000011, PSN 0x000010 -> 0x000110, VA 0x1000 -> 0x2000 with the receiver's R_Key", "R18 R27"},
		{trace.Record{Kind: trace.Copied, Header: data}, "copy for the next switch, addresses and PSN of the source", "R24"},
		{trace.Record{Kind: trace.Resent, Header: copied, Member: receiver, WasPSN: 0x10, WasQP: 0x4711, Flags: trace.Translated | trace.AsksACK},
			"repair for 10.0.0.2 from the store, QPN 0x004711 -> 0x000011, PSN 0x000010 -> 0x000110, the switch asks for an ACK", "R43 R18 R45"},
		{trace.Record{Kind: trace.NotSent, Header: data, Member: receiver, Drop: "queue_full", Flags: trace.Deferred | trace.Translated}, "copy for 10.0.0.2 not sent, it waits in the repair store until the port has room", "R51"},
		{trace.Record{Kind: trace.Built, Header: ack(group, source, rocev2.SyndromeACK)}, "ACK to 10.0.0.1 in the name of all receivers", "R01 R20"},
		{trace.Record{Kind: trace.Built, Header: ack(group, source, rocev2.SyndromeACK), Flags: trace.Replaced}, "ACK to 10.0.0.1 in the name of all receivers, not sent, as a later ACK of the same batch says more", "R01 R20"},
		{trace.Record{Kind: trace.Built, Header: ack(group, source, rocev2.SyndromeNAKSequence)}, "NAK (sequence error) to 10.0.0.1 in the name of all receivers", "R14"},
		{trace.Record{Kind: trace.Built, Header: copied}, "probe that makes 10.0.0.2 say which PSN it expects", "R52"},
	} {
		text, rules := traceText(&c.x)
		if text != c.text || strings.Join(rules, " ") != c.rules {
			t.Errorf("%q %v\nwant %q %s", text, rules, c.text, c.rules)
		}
	}
}
