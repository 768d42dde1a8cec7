// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/control"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// chainSwitch is one of several switches within the test process.
type chainSwitch struct {
	t      *testing.T
	ns     *lab.Namespace
	id     int
	engine *control.Engine
	stop   func() // ends it at once
	notes  *notes
}

// switchSecret is that of the switches' key.
const switchSecret = "1f0e9d8c7b6a5948372615f4e3d2c1b00918273645546372819aabbccddeef01"

// start runs a switch with these ports, and more lines of configuration.
func (s *chainSwitch) start(more string, ports ...string) {
	s.t.Helper()
	text := "group_prefixes: [10.77.254.0/24]\nenvelope: {insecure: true}\numem: {frames: 2048}\nrings: {rx: 64, tx: 64, fill: 64, completion: 64}\n" +
		more + "\nports:\n"
	for _, p := range ports {
		text += "  - {name: " + p + "}\n"
	}
	cfg, err := config.Parse("test.yaml", []byte(text))
	if err != nil {
		s.t.Fatal(err)
	}
	s.notes = &notes{}
	if err := s.ns.Do(func() (err error) { s.engine, err = control.Open(cfg, s.notes.add); return err }); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.ns.Do(func() error { return s.engine.Run(ctx) }) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-ended, s.engine.Close()); err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(func() {
		s.stop()
		if s.t.Failed() {
			s.t.Logf("switch %d:\n%s", s.id, strings.Join(s.notes.lines, "\n"))
		}
	})
}

// section is the section of the configuration by which s is known to others.
func (s *chainSwitch) section(secret string) string {
	return fmt.Sprintf("switch: {id: '%016x', keys: [{id: 1, secret: hex:%s}]}", s.id, secret)
}

func (s *chainSwitch) topology() *api.Topology {
	s.t.Helper()
	top, err := s.engine.Topology()
	if err != nil {
		s.t.Fatal(err)
	}
	return top
}

// at returns the neighbour of a port that is up; nil if there is none.
func (s *chainSwitch) at(port string) *api.NeighbourSwitch {
	for _, n := range s.topology().Neighbours {
		if n.Port == port && n.State == api.LinkUp {
			return &n
		}
	}
	return nil
}

// soon waits for a condition.
func (s *chainSwitch) soon(what string, holds func() bool) {
	s.t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("not within 20 s: %s; %+v", what, s.topology())
		}
	}
}

// newChain makes switches 1, 2 and 3 in a row, with hosts behind the third one. Port "right"
// of a switch leads to port "left" of the next. That of the first one is a port of a bridge.
func newChain(t *testing.T) (list []*chainSwitch) {
	t.Helper()
	l := labtest.New(t)
	var err error
	do := func(e error) { err = errors.Join(err, e) }
	for i := range 3 {
		ns, e := l.Namespace(fmt.Sprintf("sw%d", i+1))
		do(e)
		list = append(list, &chainSwitch{t: t, ns: ns, id: i + 1})
	}
	hosts, e := l.Namespace("hosts")
	if do(e); err != nil {
		t.Fatal(err)
	}
	a, b, c := list[0].ns, list[1].ns, list[2].ns
	do(lab.Veth(lab.End{NS: a, Name: "right"}, lab.End{NS: b, Name: "left"}, 0))
	do(lab.Veth(lab.End{NS: b, Name: "right"}, lab.End{NS: c, Name: "left"}, 0))
	do(lab.Veth(lab.End{NS: c, Name: "hosts"}, lab.End{NS: hosts, Name: "eth0"}, 0))
	do(a.Bridge("br0", nil, 1500))
	do(a.Enslave("right", "br0"))
	for _, x := range []struct {
		ns   *lab.Namespace
		port string
		addr string
	}{{a, "br0", "10.0.12.1/24"}, {b, "left", "10.0.12.2/24"}, {b, "right", "10.0.23.2/24"}, {c, "left", "10.0.23.3/24"}, {c, "hosts", "10.9.0.3/24"}, {hosts, "eth0", "10.9.0.100/24"}} {
		do(x.ns.AddAddr(x.port, netip.MustParsePrefix(x.addr)))
	}
	do(a.AddRoute(netip.MustParsePrefix("10.9.0.0/24"), netip.MustParseAddr("10.0.12.2"), "br0"))
	do(b.AddRoute(netip.MustParsePrefix("10.9.0.0/24"), netip.MustParseAddr("10.0.23.3"), "right"))
	for _, ns := range []*lab.Namespace{a, b, c, hosts} {
		do(ns.WaitUp(10 * time.Second))
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// startAll starts the three switches.
func startAll(list []*chainSwitch) {
	list[0].start(list[0].section(switchSecret), "right")
	list[1].start(list[1].section(switchSecret), "left", "right")
	list[2].start(list[2].section(switchSecret), "left", "hosts")
}

// Three switches know their neighbours through their XDP programs and AF_XDP sockets, one of
// them by a port of a bridge, and no others. One that is killed is down at its neighbours within
// the hold time; it comes back under the same numbers, with other sessions.
func TestSwitchesKnowTheirNeighbours(t *testing.T) {
	list := newChain(t)
	startAll(list)
	a, b, c := list[0], list[1], list[2]
	for _, x := range []struct {
		s, peer    *chainSwitch
		port, back string
	}{{a, b, "right", "left"}, {b, a, "left", "right"}, {b, c, "right", "left"}, {c, b, "left", "right"}} {
		x.s.soon("a neighbour at "+x.port, func() bool { return x.s.at(x.port) != nil && x.peer.at(x.back) != nil })
		x.s.soon("one session", func() bool {
			n, m := x.s.at(x.port), x.peer.at(x.back)
			return n != nil && m != nil && n.Session == m.Session && n.Switch == fmt.Sprintf("%016x", x.peer.id) && n.MTU == 1500
		})
	}
	if at := c.at("hosts"); at != nil {
		t.Errorf("a host is a neighbour: %+v", at)
	}
	first := *a.at("right")
	machine := labtest.Watch()
	killed := time.Now()
	b.stop()
	a.soon("the killed one is down", func() bool { return a.at("right") == nil })
	if d := time.Since(killed); d > time.Duration(first.Hold*float64(time.Second))+200*time.Millisecond {
		machine.Timing(t, "down after %v, the hold time is %v s", d, first.Hold)
	}
	down := a.topology().Neighbours[0]
	if down.Number != first.Number || down.Reason != "no neighbour is heard" || !says(a.notes, "a neighbour switch is down") {
		t.Errorf("%+v", down)
	}
	c.soon("the killed one is down at the other side", func() bool { return c.at("left") == nil })
	b.start(b.section(switchSecret), "left", "right")
	a.soon("it is back", func() bool { return a.at("right") != nil })
	if n := a.at("right"); n.Number != first.Number || n.Session == first.Session || n.Switch != first.Switch {
		t.Errorf("%+v, before %+v", n, first)
	}
}

// says reports whether the log has a text.
func says(n *notes, text string) bool {
	n.Lock()
	defer n.Unlock()
	return strings.Contains(strings.Join(n.lines, "\n"), text)
}

// register tries to register a group of hosts behind the third switch, and of one that is
// nowhere, at a switch; it returns why that failed.
func (s *chainSwitch) register(members ...string) error {
	r := &api.Register{Group: netip.MustParseAddr("10.77.254.9"), QPN: 0x4711, PMTU: 1024, Policy: api.PolicyStrict, NoRepair: true}
	for i, m := range members {
		r.Members = append(r.Members, api.RegisterMember{IP: netip.MustParseAddr(m), QPN: api.QPN(0x100 + i), SQPSN: 1, RQPSN: 1})
	}
	return s.engine.Register(r)
}

// The next hop of a member is a neighbour, found through a bridge or not; with another key at
// the neighbour it is none, and topology and log say why.
func TestNextHopsOfMembers(t *testing.T) {
	list := newChain(t)
	startAll(list)
	a, b, c := list[0], list[1], list[2]
	a.soon("neighbours", func() bool { return a.at("right") != nil && b.at("right") != nil && c.at("left") != nil })
	for _, x := range []struct {
		s    *chainSwitch
		want api.NextHop
	}{
		{a, api.NextHop{Gateway: netip.MustParseAddr("10.0.12.2"), Port: "right", Switch: "0000000000000002"}},
		{b, api.NextHop{Gateway: netip.MustParseAddr("10.0.23.3"), Port: "right", Switch: "0000000000000003"}},
	} {
		go x.s.register("10.9.0.100", "10.9.0.101") // whatever becomes of it, the members are looked up
		x.s.soon("next hops", func() bool {
			hops := x.s.topology().NextHops
			return len(hops) == 1 && hops[0].Gateway == x.want.Gateway && hops[0].Port == x.want.Port && hops[0].Switch == x.want.Switch && hops[0].Hosts == 2
		})
	}
	b.stop()
	b.start(b.section(strings.Repeat("8f4be1a60c7d3952", 3)+"14d3fa887ce02b91"), "left", "right")
	a.soon("hellos under another secret are dropped", func() bool {
		l := a.topology().Links[0]
		return l.State == api.LinkDown && l.Drops["hello_bad_mac"] > 3 && strings.Contains(l.LastDrop, "wrong HMAC")
	})
	go a.register("10.9.0.100", "10.9.0.101")
	a.soon("the reason", func() bool {
		hops := a.topology().NextHops
		return len(hops) == 1 && hops[0].Switch == "" && strings.Contains(hops[0].Reason, "next hop 10.0.12.2 on right is not a gleamd switch: no neighbour is heard") &&
			strings.Contains(hops[0].Reason, "wrong HMAC")
	})
	if s, err := a.engine.Stats(); err != nil || s.Drops["hello_bad_mac"] == 0 {
		t.Errorf("stats: %v", err)
	}
	events, err := a.engine.Events(t.Context(), 0)
	if err != nil || !slices.ContainsFunc(events.Events, func(e api.Event) bool {
		return e.Kind == api.EventNeighbour && strings.Contains(e.Reason, "switch 0000000000000002 at port right is up, session")
	}) {
		t.Errorf("events: %v", err)
	}
}

// Without keys of switches a router is a host to the switch, as ever: members behind it are at
// its port.
func TestWithoutKeysARouterIsAHost(t *testing.T) {
	list := newChain(t)
	a := list[0]
	a.start("unconfirmed_moves: follow", "right")
	if err := list[1].ns.Sysctl("net.ipv4.ip_forward", "1"); err != nil {
		t.Fatal(err)
	}
	if err := a.register("10.9.0.100", "10.9.0.101"); err != nil {
		t.Fatal(err)
	}
	groups, err := a.engine.Groups(nil)
	if err != nil || len(groups) != 1 || len(groups[0].Members) != 2 || groups[0].Members[1].Port != "right" {
		t.Errorf("%+v, %v", groups, err)
	}
	if top := a.topology(); top.Switch != "" || len(top.Links)+len(top.Neighbours)+len(top.NextHops) > 0 {
		t.Errorf("%+v", top)
	}
}
