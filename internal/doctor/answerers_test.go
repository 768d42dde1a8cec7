// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/bpf"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/rocev2"
)

// testSurvey is a survey of a host, with its key and one answerer at a MAC address.
func testSurvey(mac rocev2.MAC) (s *survey, a *answerer) {
	s = &survey{
		mac: rocev2.MAC{2, 1}, from: netip.MustParseAddrPort("10.77.0.1:4000"), hop: labGroup, group: labGroup,
		auth: envelope.Auth{Keys: envelope.Keys{1: bytes.Repeat([]byte("key "), 8)}, Send: 1},
	}
	return s, s.at(mac)
}

// reply is what a switch with a key answers to a request of s that was sent to a, by a frame
// from a MAC address.
func reply(t *testing.T, s *survey, a *answerer, from rocev2.MAC, key []byte, change func(*envelope.Message)) *rocev2.Frame {
	t.Helper()
	m := &envelope.Message{Header: envelope.Header{
		Epoch: a.attempt, Transaction: a.requested, Total: 1, Group: s.group, ReplyTo: netip.AddrPortFrom(s.group, envelope.DefaultPort), Instance: 7,
	}, Body: &envelope.Challenge{Request: envelope.TypeRenew}}
	id := envelope.KeyID(1)
	if change(m); key == nil {
		id = 0
	}
	payload, err := envelope.Append(nil, m, envelope.Keys{1: key}, id)
	if err != nil {
		t.Fatal(err)
	}
	return datagram(t, s, from, payload)
}

func datagram(t *testing.T, s *survey, from rocev2.MAC, payload []byte) *rocev2.Frame {
	t.Helper()
	b := make([]byte, 2000)
	path := rocev2.Path{SrcMAC: from, DstMAC: s.mac, Src: s.group, Dst: s.from.Addr(), SrcPort: envelope.DefaultPort}
	b = b[:rocev2.BuildUDP(b, &path, s.from.Port(), payload)]
	f := &rocev2.Frame{}
	if r := rocev2.Decode(b, f); r != rocev2.OK {
		t.Fatal(r)
	}
	return f
}

// A Challenge proves a switch if it has the HMAC of the group's key over the numbers of the
// request that was sent to this MAC address, and only where it comes from.
func TestChallengeProves(t *testing.T) {
	there, other := rocev2.MAC{2, 9}, rocev2.MAC{2, 8}
	for _, c := range []struct {
		name             string
		from             rocev2.MAC
		key              []byte
		change           func(*envelope.Message)
		proved, isSwitch bool
	}{
		{"the switch", there, bytes.Repeat([]byte("key "), 8), func(*envelope.Message) {}, true, true},
		{"a switch behind it", other, bytes.Repeat([]byte("key "), 8), func(*envelope.Message) {}, true, false},
		{"another key", there, bytes.Repeat([]byte("kex "), 8), func(*envelope.Message) {}, false, false},
		{"no key", there, nil, func(*envelope.Message) {}, false, false},
		{"of another request", there, bytes.Repeat([]byte("key "), 8), func(m *envelope.Message) { m.Epoch++ }, false, false},
		{"of another transaction", there, bytes.Repeat([]byte("key "), 8), func(m *envelope.Message) { m.Transaction++ }, false, false},
		{"an answer that is none", there, bytes.Repeat([]byte("key "), 8), func(m *envelope.Message) { m.Body = &envelope.Accept{Request: envelope.TypeRenew} }, false, false},
	} {
		s, a := testSurvey(there)
		if s.answered(reply(t, s, a, c.from, c.key, c.change)); a.proved != c.proved || a.isSwitch() != c.isSwitch {
			t.Errorf("%s: proved %v, the switch %v", c.name, a.proved, a.isSwitch())
		}
	}
	s, a := testSurvey(there)
	requests := s.frames(a)
	var f rocev2.Frame
	if len(requests) != 2 || rocev2.Decode(requests[1], &f) != rocev2.OK {
		t.Fatalf("%x", requests)
	}
	if s.answered(datagram(t, s, there, f.UDPPayload())); a.proved {
		t.Error("its own request, reflected, proves a switch")
	}
}

// An identification counts for the MAC address that it was sent to, and makes that the switch's if
// the switch says the same.
func TestIdentificationTells(t *testing.T) {
	there, other := rocev2.MAC{2, 9}, rocev2.MAC{2, 8}
	for _, port := range []rocev2.MAC{there, other} {
		s, a := testSurvey(there)
		second := s.at(rocev2.MAC{2, 7})
		var request, answer rocev2.Frame
		b := make([]byte, 200)
		if rocev2.Decode(s.frames(a)[0], &request) != rocev2.OK {
			t.Fatal("no request")
		}
		n, _ := rocev2.BuildEchoReply(b, &request, port)
		if rocev2.Decode(b[:n], &answer) != rocev2.OK {
			t.Fatal("no answer")
		}
		if s.answered(&answer); !a.claims || a.isSwitch() != (port == there) || second.claims || second.echoes {
			t.Errorf("port %v: %+v, and another one: %+v", port, a, second)
		}
	}
}

// What is found about who answers.
func TestWhoAnswers(t *testing.T) {
	one, two := rocev2.MAC{2, 1}, rocev2.MAC{2, 2}
	sw := func(mac rocev2.MAC) *answerer {
		return &answerer{mac: mac, resolved: true, own: true, claims: true, at: mac}
	}
	host := &answerer{mac: two, resolved: true, own: true, echoes: true}
	proxy := &answerer{mac: two, resolved: true, claims: true, at: one}
	behind := &answerer{mac: two, resolved: true, own: true, claims: true, at: one}
	entry := func(mac rocev2.MAC, state int) *netlink.Neigh {
		return &netlink.Neigh{HardwareAddr: mac[:], State: state}
	}
	gateway := netip.MustParseAddr("10.77.0.254")
	for _, c := range []struct {
		name  string
		w     way
		texts []string // the texts of findings, in order
	}{
		{"the switch", way{entry: entry(one, netlink.NUD_REACHABLE), echo: true, found: []*answerer{sw(one)}}, nil},
		{"nobody", way{}, []string{"nobody answers ARP requests"}},
		{"a host too", way{entry: entry(one, netlink.NUD_REACHABLE), echo: true, found: []*answerer{sw(one), host}}, []string{"2 answer ARP requests"}},
		{"a proxy too, and the table has it", way{entry: entry(two, netlink.NUD_REACHABLE), found: []*answerer{sw(one), proxy}}, []string{"(proxy ARP)", "the neighbour table has"}},
		{"a host alone", way{entry: entry(two, netlink.NUD_REACHABLE), echo: true, found: []*answerer{host}}, []string{"does not prove that it is the switch: either it is another host with this address, or gleamd does not serve this group (outside group_prefixes, or without the key)"}},
		{"somebody without proof", way{near: gateway, entry: entry(two, netlink.NUD_REACHABLE), found: []*answerer{{mac: two, resolved: true, own: true}}}, []string{"without the key, or this host's own address 10.77.0.254 is in group_prefixes)"}},
		{"a proxy alone", way{entry: entry(two, netlink.NUD_REACHABLE), found: []*answerer{{mac: two, resolved: true}}}, []string{"either it is another host, which answers for others, or gleamd"}},
		{"two switches", way{entry: entry(one, netlink.NUD_REACHABLE), echo: true, found: []*answerer{sw(one), sw(two)}}, []string{"2 ports of switches answer"}},
		{"by hand", way{entry: entry(one, netlink.NUD_PERMANENT), echo: true, found: []*answerer{sw(one)}}, []string{"an entry by hand"}},
		{"by hand, and wrong", way{entry: entry(two, netlink.NUD_PERMANENT), found: []*answerer{sw(one), {mac: two}}}, []string{"nobody answers for its address at 02:02"}},
		{"a firewall", way{entry: entry(one, netlink.NUD_REACHABLE), found: []*answerer{sw(one)}}, []string{"an echo request by this host's kernel is not answered"}},
		{"a gateway", way{hop: gateway, entry: entry(two, netlink.NUD_REACHABLE), echo: true, found: []*answerer{behind}}, nil},
		{"a gateway to nowhere", way{hop: gateway, entry: entry(two, netlink.NUD_REACHABLE), found: []*answerer{host}}, []string{"no switch answers behind it"}},
		{"two gateways", way{hop: gateway, entry: entry(two, netlink.NUD_REACHABLE), echo: true, found: []*answerer{behind, {mac: one, resolved: true, own: true}}}, []string{"leads to no switch"}},
	} {
		if c.w.name, c.w.group = "eth0", labGroup; !c.w.hop.IsValid() {
			c.w.hop = labGroup
		}
		found := c.w.findings()
		if len(found) != len(c.texts) {
			t.Errorf("%s: %+v", c.name, found)
			continue
		}
		for i, f := range found {
			if !strings.Contains(f.Text, c.texts[i]) || f.Cost == "" || f.Command+f.Remedy == "" {
				t.Errorf("%s: %+v, want %q", c.name, f, c.texts[i])
			}
		}
	}
}

// The filter passes what answers questions, and no data of groups.
func TestAnswersFilter(t *testing.T) {
	s, a := testSurvey(rocev2.MAC{2, 9})
	six := netip.MustParseAddr("fd77::6c65:1")
	for _, c := range []struct {
		name string
		make func(b []byte) int
		pass bool
	}{
		{"ARP", func(b []byte) int { return copy(b, s.questions()[0]) }, true},
		{"an echo", func(b []byte) int { return copy(b, s.frames(a)[0]) }, true},
		{"an envelope", func(b []byte) int {
			return rocev2.BuildUDP(b, &rocev2.Path{Src: labGroup, Dst: s.from.Addr(), SrcPort: envelope.DefaultPort}, 4000, []byte("envelope"))
		}, true},
		{"RoCEv2", func(b []byte) int {
			return rocev2.BuildUDP(b, &rocev2.Path{Src: labGroup, Dst: s.from.Addr(), SrcPort: 50000}, rocev2.UDPPort, make([]byte, 100))
		}, false},
		{"an advertisement", func(b []byte) int {
			return rocev2.BuildUnsolicitedAdvertisement(b, &rocev2.Path{}, six)
		}, true},
		{"an envelope by IPv6", func(b []byte) int {
			return rocev2.BuildUDP(b, &rocev2.Path{Src: six, Dst: netip.MustParseAddr("fd77::1"), SrcPort: envelope.DefaultPort}, 4000, []byte("envelope"))
		}, true},
		{"RoCEv2 by IPv6", func(b []byte) int {
			return rocev2.BuildUDP(b, &rocev2.Path{Src: six, Dst: netip.MustParseAddr("fd77::1"), SrcPort: 50000}, rocev2.UDPPort, make([]byte, 100))
		}, false},
	} {
		b := make([]byte, 2000)
		n := c.make(b)
		if got := filterPasses(t, b[:n]); got != c.pass || n == 0 {
			t.Errorf("%s, %d bytes: passes %v", c.name, n, got)
		}
	}
}

// filterPasses runs the filter on a frame.
func filterPasses(t *testing.T, frame []byte) bool {
	t.Helper()
	vm, err := bpf.NewVM(answersFilter)
	if err != nil {
		t.Fatal(err)
	}
	n, err := vm.Run(frame)
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}
