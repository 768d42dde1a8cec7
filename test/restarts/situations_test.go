// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/stranger"
)

// situation is a situation in which gleamd ends.
type situation struct {
	name   string
	config string // further lines of gleamd's configuration
	tree   bool   // two switches
	at     string // the one that ends; ""  for l1
	fast   bool   // true: the fast path is on
	wired  bool   // links can lose their carrier

	prepare   func(*scene)        // changes the network
	form      func(*scene) *group // makes the group, at first and anew in the end
	before    func(*scene)        // a change before the state file fails
	act       func(*scene)        // an act at once before gleamd ends. A member sends meanwhile, from then until the end of after.
	after     func(*scene)        // what holds when gleamd is back
	still     bool                // nobody sends meanwhile
	oneSource bool                // b's queue pair sends nothing
	// mayFail: where the state file fails, the group may end with gleamd: its source gets an error then, or its master hears
	// of the end.
	mayFail bool
}

var situations = []situation{
	{name: "pins", form: byHand(api.PolicyStrict), before: arePinned, after: arePinned},
	{name: "keys", form: byEnvelopesOfSecond, prepare: twoKeys, before: staysHome, after: staysHome},
	{name: "member joins", form: byEnvelopes, act: joins, after: hasJoined},
	{name: "member leaves", form: byEnvelopes, act: leaves, after: hasLeft, mayFail: true},
	{name: "link down", form: byHand(api.PolicyStrict), wired: true, act: linkDown, after: linkUp},
	{name: "member killed", form: byHand(api.PolicyEvict), act: killed},
	{name: "operator's move", form: byHand(api.PolicyStrict), prepare: twoUplinks, act: moved, after: staysMoved},
	{name: "CM dialled", form: byCMDialled, after: dialsAgain, still: true, oneSource: true},
	{name: "CM joined", form: byCMJoined, act: disconnects, after: hasDisconnected, oneSource: true, mayFail: true},
	{name: "tree root", form: byEnvelopes, tree: true, at: "l1"},
	{name: "tree leaf", form: byEnvelopes, tree: true, at: "l2"},
	{name: "fast path", form: byHand(api.PolicyStrict), fast: true, before: becomesFast, after: isFast},
}

// arePinned waits until the kernel's tables have each member, and checks that the strangers move none.
func arePinned(s *scene) {
	s.t.Helper()
	for _, name := range []string{"a", "b", "c"} {
		h := s.hosts[name]
		s.until(name+" is pinned", func() bool { return s.pinned(h) })
		if at := s.place(h); at != h.home() {
			s.t.Errorf("%s is at %s, want %s", name, at, h.home())
		}
	}
}

// outcome is that of a change of the members that is under way.
type outcome struct {
	done chan struct{}
	err  error
}

func (s *scene) change(f func(ctx context.Context) error) *outcome {
	o := &outcome{done: make(chan struct{})}
	go func() {
		defer close(o.done)
		ctx, cancel := context.WithTimeout(s.ctx, patience)
		defer cancel()
		o.err = f(ctx)
	}()
	return o
}

// untilAccepted returns at the moment at which the switch tells a host that it has accepted what it was asked, or when the
// outcome is known. A switch that cannot store the change may have no answer: then gleamd ends a second later.
func (s *scene) untilAccepted(w *stranger.Wire, o *outcome) {
	keys := envelope.Keys{testbed.KeyID: s.bed.Key}
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		select {
		case <-o.done:
			return
		default:
		}
		var f rocev2.Frame
		if !w.Next(&f) || f.Kind != rocev2.KindUDP || f.UDP().SrcPort() != envelope.DefaultPort {
			continue
		}
		if m, err := envelope.Open(f.UDPPayload(), keys, false); err == nil && m.Type == envelope.TypeAccept {
			return
		}
	}
}

// joins has d join, and returns when the switch has accepted that. It is a member for what is sent after its program and the
// master's were told so.
func joins(s *scene) {
	s.t.Helper()
	g := s.group
	p := g.participant("d", s.bed.Key, testbed.KeyID)
	d := g.member("d")
	g.mu.Lock()
	d.live, d.first = false, int(^uint(0)>>1)
	g.mu.Unlock()
	ln, err := lab.In(d.NS, func() (net.Listener, error) { return net.Listen("tcp", netip.AddrPortFrom(d.ip, 0).String()) })
	s.must(err)
	s.t.Cleanup(func() { ln.Close() })
	joined := make(chan error, 1)
	go func() {
		joined <- d.NS.Do(func() error {
			x, err := endpoint.Member(s.ctx, endpoint.MemberConfig{Listener: ln, Local: p.Local})
			if err == nil {
				g.mu.Lock()
				g.masters = append(g.masters, x)
				d.joined(x)
				g.mu.Unlock()
			}
			return err
		})
	}()
	w := stranger.New(s.t, s.hosts["a"].Host)
	d.change = s.change(func(ctx context.Context) error {
		err := s.hosts["a"].NS.Do(func() error { return g.masters[0].Add(ctx, ln.Addr().String()) })
		if err == nil {
			err = <-joined
		}
		if err == nil {
			g.mu.Lock()
			d.live, d.first = true, g.posted
			g.mu.Unlock()
		}
		return err
	})
	s.untilAccepted(w, d.change)
}

// hasJoined waits for the outcome. A change that was refused, or not answered, did not happen as far as anybody was told.
func hasJoined(s *scene) {
	s.t.Helper()
	o := s.group.member("d").change
	<-o.done
	s.t.Logf("the outcome of the change: %v", o.err)
}

// leaves has c leave.
func leaves(s *scene) {
	s.t.Helper()
	g := s.group
	g.out("c")
	c := g.member("c")
	w := stranger.New(s.t, c.Host)
	c.change = s.change(func(ctx context.Context) error { return g.masters[2].Leave(ctx) })
	s.untilAccepted(w, c.change)
}

// hasLeft waits for the outcome, and ends c's program if it was told that it has left: a strict group that has it still waits
// for ever.
func hasLeft(s *scene) {
	s.t.Helper()
	s.mend() // else nobody is told that a member has left
	o := s.group.member("c").change
	<-o.done
	s.t.Logf("the outcome of the change: %v", o.err)
	if o.err == nil {
		s.check(s.group.masters[2].Close())
	}
}

// linkDown takes the carrier from c's link.
func linkDown(s *scene) {
	s.t.Helper()
	s.must(s.bed.SetCarrier("l1", "c", false))
	s.until("the port of c is down", func() bool { return strings.Contains(s.gleamd().Output(), "port is down") })
}

// linkUp gives it back, after the strangers have tried to acknowledge in c's name.
func linkUp(s *scene) {
	s.t.Helper()
	s.strangersTry("while the link is down", 12, func() bool { return false })
	s.must(s.bed.SetCarrier("l1", "c", true))
}

// killed ends c's programs. The group evicts it.
func killed(s *scene) {
	s.t.Helper()
	s.group.out("c")
	s.hosts["c"].kill()
}

// twoUplinks puts c behind a switch of its own with two bridges, which have links to the ports c and d.
func twoUplinks(s *scene) {
	s.t.Helper()
	c := s.hosts["c"]
	rack, err := s.bed.Lab.Namespace("rack")
	s.must(err)
	f, err := os.Open(rack.Path())
	s.must(err)
	defer f.Close()
	for _, name := range []string{"c", "d"} {
		h := s.hosts[name].NS.Handle()
		l, err := h.LinkByName(fabric.HostInterface)
		s.must(err)
		s.must(errors.Join(
			h.LinkSetDown(l), h.LinkSetName(l, "up-"+name), h.LinkSetHardwareAddr(l, net.HardwareAddr{2, 0x67, 0x6c, 0x78, 0, name[0]}), h.LinkSetNsFd(l, int(f.Fd())),
			rack.Bridge("to-"+name, net.HardwareAddr{2, 0x67, 0x6c, 0x77, 0, name[0]}, 1500), rack.Enslave("up-"+name, "to-"+name), rack.SetUp("up-"+name),
		))
	}
	s.must(lab.Veth(lab.End{NS: rack, Name: "c"}, lab.End{NS: c.NS, Name: fabric.HostInterface, MAC: c.MAC}, 1500))
	s.must(errors.Join(rack.Enslave("c", "to-c"), c.NS.SetFeature(fabric.HostInterface, lab.TXChecksum, false), c.NS.SetFeature(fabric.HostInterface, lab.GRO, true)))
	for _, ip := range []netip.Addr{c.IPv4, c.IPv6} {
		s.must(c.NS.AddAddr(fabric.HostInterface, netip.PrefixFrom(ip, map[bool]int{false: 24, true: 64}[ip.Is6()])))
		s.must(c.NS.AddRoute(netip.PrefixFrom(stranger.Gateway(ip), 0), stranger.Gateway(ip), fabric.HostInterface))
	}
	s.must(errors.Join(rack.WaitUp(patience), c.NS.WaitUp(patience)))
	s.rack = rack
}

// moved plugs c into port d, as a virtual machine that migrates, and has an operator confirm that.
func moved(s *scene) {
	s.t.Helper()
	k := s.rack.Handle()
	l, err := k.LinkByName("c")
	s.must(err)
	to, err := k.LinkByName("to-d")
	s.must(errors.Join(err, k.LinkSetMaster(l, to)))
	s.confirm()
}

// confirm has an operator move c to port d, where it was seen.
func (s *scene) confirm() {
	s.t.Helper()
	c := s.hosts["c"]
	w := stranger.New(s.t, c.Host)
	var err error
	if !s.within(patience, func() bool {
		c.announce(w)
		err = s.client().MoveMember(s.ctx, s.address(), c.ip, &api.MoveMember{Port: "d"}) // an error may be that it is not stored
		return strings.HasPrefix(s.place(c), "d ")
	}) {
		s.t.Fatalf("an operator cannot move c to port d: %v; it is at %s", err, s.place(c))
	}
}

// staysMoved checks that the operator's word holds. Where it could not be stored it is given again.
func staysMoved(s *scene) {
	s.t.Helper()
	c := s.hosts["c"]
	if at := s.place(c); !strings.HasPrefix(at, "d ") {
		if x, err := s.client().Stats(s.ctx); err != nil || x.Control.State == nil || x.Control.State.Failing == "" {
			s.t.Errorf("c is at %s, after an operator has moved it to port d", at)
		}
		s.confirm()
	}
}

// becomesFast has a send until XDP replicates its packets.
func becomesFast(s *scene) {
	s.t.Helper()
	f := s.group.flow("a")
	isFast(s)
	s.check(f.end())
}

// isFast waits until XDP replicates the packets of a transfer that is under way.
func isFast(s *scene) {
	s.t.Helper()
	fast := func() uint64 {
		n, err := testbed.FastPackets(s.ctx, s.client())
		s.must(err)
		return n
	}
	begin := fast()
	s.until("XDP replicates packets", func() bool { return fast() > begin+20 || s.group.isOver() })
}
