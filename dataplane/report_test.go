// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/mcast/token"
	"github.com/gleam-rdma/gleam/rocev2"
)

const otherSwitchKey = "hex:5b1c90d7e24a8f3362d0b9471eac85f70d3b6e2c9f1478a5e0c2d4b6f8197a31"

// switchKeys parses a configuration with these keys of switches.
func switchKeys(t *testing.T, secrets ...string) []config.SwitchKey {
	text := "switch:\n  id: \"00000000000000ff\"\n  keys:\n"
	for i, s := range secrets {
		text += "    - {id: " + string(rune('1'+i)) + ", secret: \"" + s + "\"}\n"
	}
	return fakeConfig(t, 1, text, "").Switch.Keys
}

// A report counts if it has the MAC of a key of switches, came from the neighbour that it
// was made by to the switch that it was made for, and is about the group that it was sent
// to. Everything else is dropped, counted, and changes nothing.
func TestReportsAreAuthentic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTreeNet(t, treeConfig{pmtu: 1024})
		leaf, spine := n.nodes[0], n.nodes[1]
		up, down := spine.ports[0].mac, leaf.ports[2].mac
		w := leaf.all[0]
		message := func(change func(*token.Message)) []byte {
			_, _, seen, _ := w.core.Group(0).ReportNumbers(12)
			m := token.Message{Group: n.group, Session: token.SessionOf(edgeSession(n.session, 0), 1), Seq: seen + 1, Report: token.Report{Term: token.FirstTerm(1) + 7}}
			change(&m)
			return m.AppendBinary(nil)
		}
		none := func(*token.Message) {}
		good := newReportAuth(switchKeys(t, treeSwitchKey))
		other := newReportAuth(switchKeys(t, otherSwitchKey))
		sign := func(a *reportAuth, from, to rocev2.MAC, b []byte) []byte {
			at := len(b) - token.MACLen
			copy(b[at:], a.mac(a.keys[0], from, to, b[:at]))
			return b
		}
		send := func(port int, mac rocev2.MAC, group netip.Addr, b []byte) {
			buf := make([]byte, 512)
			path := rocev2.Path{Src: relaySource4, Dst: group, SrcMAC: mac, DstMAC: leaf.ports[port].mac, SrcPort: 4797}
			n.carry(treeEnd{node: spine, port: 0}, treeEnd{node: leaf, port: port}, buf[:rocev2.BuildUDP(buf, &path, 4797, b)])
			leaf.runAll()
		}
		term := func() token.Term { return leaf.status().Token.Term }
		before := term()
		for _, c := range []struct {
			what  string
			port  int
			mac   rocev2.MAC
			group netip.Addr
			b     []byte
			drop  string
		}{
			{"without a MAC", 2, up, n.group, message(none), "bad_report"},
			{"with another key", 2, up, n.group, sign(&other, up, down, message(none)), "bad_report"},
			{"for another switch", 2, up, n.group, sign(&good, up, rocev2.MAC{2, 3}, message(none)), "bad_report"},
			{"of this switch, sent back", 2, up, n.group, sign(&good, down, up, message(none)), "bad_report"},
			{"of another group", 2, up, netip.MustParseAddr("10.77.254.2"), sign(&good, up, down, message(none)), "bad_report"},
			{"of a version to come", 2, up, n.group, func() []byte { b := message(none); b[0] = 9; return sign(&good, up, down, b) }(), "bad_report"},
			{"of an unknown group", 2, up, netip.MustParseAddr("10.77.254.2"), sign(&good, up, down, message(func(m *token.Message) { m.Group = netip.MustParseAddr("10.77.254.2") })), "unknown_group"},
			{"of another session", 2, up, n.group, sign(&good, up, down, message(func(m *token.Message) { m.Session++ })), "no_session"},
			{"by a host's port", 1, up, n.group, sign(&good, up, down, message(none)), ""},
			{"from a host's MAC address", 2, n.hosts[1].mac, n.group, sign(&good, n.hosts[1].mac, down, message(none)), ""},
		} {
			was := w.count
			send(c.port, c.mac, c.group, c.b)
			if now := term(); now != before {
				t.Errorf("a report %s: the term is %x, was %x", c.what, now, before)
			}
			switch envelopes := w.count.envelopeIn - was.envelopeIn; {
			case c.drop == "" && envelopes != 1: // the registrar drops it, as any bytes of a host
				t.Errorf("a report %s: drops %v", c.what, leaf.drops())
			case c.drop != "" && (envelopes != 0 || counted(&w.count, c.drop) != counted(&was, c.drop)+1):
				t.Errorf("a report %s: %d counted as %s, were %d", c.what, counted(&w.count, c.drop), c.drop, counted(&was, c.drop))
			}
		}
		send(2, up, n.group, sign(&good, up, down, message(none)))
		if now := term(); now != before+7 {
			t.Fatalf("after an authentic report of term %x: %x; drops %v", before+7, now, leaf.drops())
		}
	})
}

func counted(c *counters, reason string) uint64 {
	normal, drops := c.unserved()
	return normal[reason] + drops[reason]
}

// All keys are accepted and the first one makes MACs: neighbours agree while keys are
// replaced one switch after the other, and a transfer goes on.
func TestSwitchKeysAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newTreeNet(t, treeConfig{pmtu: 1024})
		src := 0
		for _, secrets := range [][]string{{treeSwitchKey, otherSwitchKey}, {otherSwitchKey, treeSwitchKey}, {otherSwitchKey}} {
			for _, x := range n.nodes {
				for _, w := range x.all {
					w.reports = newReportAuth(switchKeys(t, secrets...))
				}
				n.transfer(src, treeOps[:1], []int{3000})
				src = 3 - src // another leaf: the token moves
			}
		}
		for _, x := range n.nodes {
			if d := x.drops()["bad_report"]; d != 0 {
				t.Errorf("%s: %d reports are not authentic", x.name, d)
			}
		}
		n.nodes[0].all[0].reports = newReportAuth(switchKeys(t, treeSwitchKey))
		if err := n.hosts[src].qp.PostSend(rc.WR{Data: []byte("x"), Signaled: true}); err != nil {
			t.Fatal(err)
		}
		end := n.now() + 300*time.Millisecond
		n.runUntil("time", func() bool { return n.now() > end })
		if n.nodes[0].drops()["bad_report"]+n.nodes[1].drops()["bad_report"] == 0 {
			t.Error("a switch with another key is believed")
		}
	})
}

// A new table for a group tells the core of the present sessions with its neighbours, as
// the group's registration does.
func TestSessionsComeWithTheTable(t *testing.T) {
	p, err := Unattached(fakeConfig(t, 2, "", ""), 1500, func(bool, string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Run(func() {
		ip := netip.MustParseAddr("10.77.254.1")
		spec := mcast.GroupSpec{
			IP: ip, GroupParams: mcast.GroupParams{QPN: treeQPN, PathMTU: 1024}, Tree: mcast.TreeSpec{Epoch: 3},
			Legs:    []mcast.LegSpec{{}, {Kind: mcast.Forwarded, Port: 1, Neighbor: 5}},
			Members: []mcast.MemberSpec{{MemberRecord: mcast.MemberRecord{IP: fakeHost(0), QPN: 0x100}}, {MemberRecord: mcast.MemberRecord{IP: fakeHost(1), QPN: 0x101}, Leg: 1}},
		}
		table := Table{IP: ip, QPN: treeQPN, PMTU: 1024, Legs: []Leg{{}, {Neighbour: 5, Port: 1}},
			Destinations: []Destination{{IP: fakeHost(0), QPN: 0x100}, {Origin: Origin{Port: -1}, IP: fakeHost(1), QPN: 0x101, Leg: 1}}}
		g := p.NewGroup(0, ip)
		session := func() (s uint64) {
			p.workers.all[0].do(func() {
				if _, _, _, up := p.workers.all[0].core.Group(0).ReportNumbers(5); up {
					s = p.workers.all[0].ports[1].neighbour.session
				}
			})
			return s
		}
		set := func(list ...Neighbour) {
			if err := p.SetNeighbours(list); err != nil {
				t.Error(err)
			}
		}
		set(Neighbour{ID: 5, Port: 1, Session: 1})
		var was GroupState
		if err := g.Install(spec, &table, &was); err != nil {
			t.Error(err)
			return
		}
		if s := session(); s != 1 {
			t.Errorf("after the registration: session %d, want 1", s)
		}
		set()
		g.SetTable(&table)
		if s := session(); s != 0 {
			t.Errorf("the neighbour is down: session %d", s)
		}
		set(Neighbour{ID: 6, Port: 1, Session: 9})
		g.SetTable(&table)
		if s := session(); s != 0 {
			t.Errorf("another neighbour is at the port: session %d", s)
		}
		set(Neighbour{ID: 5, Port: 1, Session: 2})
		if s := session(); s != 0 {
			t.Errorf("before the table: session %d", s)
		}
		g.SetTable(&table)
		if s := session(); s != 2 {
			t.Errorf("session %d, want 2", s)
		}
	}); err != nil {
		t.Fatal(err)
	}
}
