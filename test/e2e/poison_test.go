// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// poison makes the switch's kernel believe that v is at the attacker, until the
// returned function ends it. Behind a bridge it is done by gratuitous ARP or neighbour
// advertisements, to the switch alone, so that the hosts still reach each other. A
// routed port gets none of the attacker's frames: there the test writes the entry, as
// if the attacker were behind the same port.
func (a *attacker) poison(v *rigHost) (end func()) {
	a.r.t.Helper()
	h := a.r.star.Switch.Handle()
	name := lab.StarBridge
	if a.r.c.star.NoBridge {
		name = v.Port
	}
	link, err := h.LinkByName(name)
	if err != nil {
		a.r.t.Fatal(err)
	}
	frame := a.stolenAddress(v)
	copy(frame, link.Attrs().HardwareAddr)
	entry := &netlink.Neigh{LinkIndex: link.Attrs().Index, IP: v.ip.AsSlice(), HardwareAddr: a.MAC, State: netlink.NUD_STALE}
	if err := h.NeighSet(entry); err != nil { // the entry after a request for v that the attacker has answered
		a.r.t.Fatal(err)
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if a.r.c.star.NoBridge {
				_ = h.NeighSet(entry)
			} else {
				a.send(frame)
			}
			select {
			case <-stop:
				_ = h.NeighDel(entry) // as it ages
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return func() { close(stop); <-ended }
}

// takes returns the kinds of envelopes of the group that have come to the attacker, and
// fails at a RoCEv2 packet. With pass it sends each on to v.
func (a *attacker) takes(pass *rigHost) (types []envelope.Type) {
	a.r.t.Helper()
	for x := a.next(); x != nil; x = a.next() {
		switch {
		case x.Kind == rocev2.KindRoCE:
			a.r.t.Fatalf("the attacker receives %x", x.raw)
		case x.Kind == rocev2.KindUDP && x.Src() == a.r.group:
			m, err := envelope.Open(x.UDPPayload(), testAuth().Keys, false)
			if err != nil {
				a.r.t.Fatal(err)
			}
			types = append(types, m.Type)
			if pass != nil {
				b := slices.Clone(x.raw)
				copy(b, pass.MAC)
				copy(b[6:], a.MAC)
				a.send(b)
			}
		}
	}
	return types
}

// registerBy registers the group by envelopes of host 0, as a master does, and returns the
// switch's answer.
func (r *rig) registerBy() envelope.Body {
	r.t.Helper()
	h := r.hosts[0]
	var conn *net.UDPConn
	if err := h.NS.Do(func() (err error) { conn, err = net.ListenUDP("udp", &net.UDPAddr{IP: h.ip.AsSlice()}); return err }); err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	reg := r.registration()
	w := mcast.Window{Base: reg.Window.VA, Len: reg.Window.Len, RKey: reg.Window.RKey}
	body := envelope.GroupBody{GroupParams: mcast.GroupParams{QPN: virtualQPN, PathMTU: reg.PMTU, Policy: mcast.Strict}, TotalMembers: len(reg.Members), Lease: time.Minute, Window: w}
	for _, m := range reg.Members {
		body.Members = append(body.Members, envelope.MemberRecord{
			IP: m.IP, QPN: rocev2.QPN(m.QPN), SQPSN: rocev2.PSN(m.SQPSN), RQPSN: rocev2.PSN(m.RQPSN),
			Window: mcast.Window{Base: m.Window.VA, Len: m.Window.Len, RKey: m.Window.RKey},
		})
	}
	auth := testAuth()
	head := envelope.Header{Transaction: 1, Total: 1, Group: r.group, ReplyTo: netip.AddrPortFrom(h.ip, conn.LocalAddr().(*net.UDPAddr).AddrPort().Port())}
	buf := make([]byte, 2048)
	for range 100 {
		data, err := envelope.Append(nil, &envelope.Message{Header: head, Body: &envelope.Register{GroupBody: body}}, auth.Keys, auth.Send)
		if err == nil {
			_, err = conn.WriteToUDPAddrPort(data, netip.AddrPortFrom(r.group, envelope.DefaultPort))
		}
		if err == nil {
			err = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		}
		if err != nil {
			r.t.Fatal(err)
		}
		n, err := conn.Read(buf)
		if err != nil {
			continue // again
		}
		m, err := envelope.Open(buf[:n], auth.Keys, false)
		if err != nil {
			r.t.Fatal(err)
		}
		if m.Transaction != head.Transaction {
			continue // a late answer to what was sent again
		}
		c, challenged := m.Body.(*envelope.Challenge)
		if !challenged {
			return m.Body
		}
		head.Instance, head.Epoch = m.Instance, c.EpochKnown+1
		head.Transaction++
	}
	r.t.Fatal("no answer to a registration")
	return nil
}

// A stranger without a key has poisoned the switch's tables before a group registers:
// the group is not registered, the stranger gets no packet of it but the Where to the
// member, and a warning names the location. Without the poison the group is registered.
func TestPoisonedBeforeRegistration(t *testing.T) {
	inNetworks(t, 3, 1, func(t *testing.T, c rigConfig) {
		c.memory, c.envelope = 128<<10, "locate_timeout: 500ms"
		r := newRig(t, c)
		r.connect()
		r.agents()
		a, v := r.attacker(0), r.hosts[2]
		end := a.poison(v)
		answer, ok := r.registerBy().(*envelope.Reject)
		if !ok || answer.Reason != envelope.LocationUnconfirmed || answer.Member.IP != v.ip || !strings.Contains(answer.Problem.Error(), rocev2.MAC(a.MAC).String()) {
			t.Errorf("the master hears %+v", answer)
		}
		end()
		if s := r.stats(); s.Groups != 0 {
			t.Errorf("%d groups are registered", s.Groups)
		}
		for _, x := range a.takes(nil) {
			if x != envelope.TypeWhere {
				t.Errorf("the stranger gets a %v", x)
			}
		}
		port := a.Port
		if c.star.NoBridge {
			port = v.Port
		}
		for _, word := range []string{v.ip.String(), "port " + port, "mac " + rocev2.MAC(a.MAC).String(), "answer none"} {
			if !r.warned("a member has not confirmed that it is where", word) {
				t.Errorf("no warning with %q", word)
			}
		}
		es, err := r.engine.Events(canceled(), 0)
		if err != nil || !slices.ContainsFunc(es.Events, func(e api.Event) bool {
			return e.Kind == api.EventRejected && strings.Contains(e.Reason, "inquiry at "+port+" "+rocev2.MAC(a.MAC).String()+", answer: none")
		}) {
			t.Errorf("events: %+v, %v", es, err)
		}

		again := r.registerBy()
		if _, ok := again.(*envelope.Accept); !ok {
			t.Fatalf("without the poison the master hears %T %+v", again, again)
		}
		if want := v.Port + " " + v.MAC.String(); r.placeOf(v) != want {
			t.Errorf("the member is at %s, want %s", r.placeOf(v), want)
		}
		r.fill(0)
		r.write(0, 64<<10)
		r.same(0)
	})
}

// warned reports whether the switch has logged a warning that begins with begin and
// contains text.
func (r *rig) warned(begin, text string) bool {
	r.notes.Lock()
	defer r.notes.Unlock()
	return slices.ContainsFunc(r.notes.lines, func(l string) bool { return strings.HasPrefix(l, "true "+begin) && strings.Contains(l, text) })
}

// A stranger behind the member's own port has poisoned the tables, and passes on to the
// member all frames that it gets. The member's Here comes from its own MAC address, a
// Where goes there, and the group is registered with the member's true location, in
// spite of the tables.
func TestPoisonedRegistrationFindsTheMember(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 4, Rack: 2}, strangers: 1, v6: v6, memory: 128 << 10})
		r.connect()
		r.agents()
		a, v := r.attacker(0), r.hosts[2]
		end := a.poison(v)
		stop, seen := make(chan struct{}), make(chan []envelope.Type)
		go func() {
			var all []envelope.Type
			for {
				all = append(all, a.takes(v)...)
				select {
				case <-stop:
					seen <- all
					return
				default:
				}
			}
		}()
		answer := r.registerBy()
		if _, ok := answer.(*envelope.Accept); ok {
			r.fill(0)
			r.write(0, 64<<10)
			r.same(0)
		} else {
			t.Errorf("IPv6 %v: the master hears %+v", v6, answer)
		}
		end()
		close(stop)
		for _, x := range <-seen {
			if x != envelope.TypeWhere {
				t.Errorf("IPv6 %v: the stranger gets a %v", v6, x)
			}
		}
		if want := v.Port + " " + v.MAC.String(); r.placeOf(v) != want {
			t.Errorf("IPv6 %v: the member is at %s, want %s", v6, r.placeOf(v), want)
		}
		if m := r.stats().Moves; m.Stray == 0 {
			t.Errorf("IPv6 %v: nothing was passed on: %+v", v6, m)
		}
		until(t, "the kernel has the member where it is", func() bool { return pinnedOf(t, r.star, v.ip) == v.MAC.String() })
	}
}

// pinnedOf returns the MAC address of the switch's permanent entry for an address.
func pinnedOf(t *testing.T, s *lab.Star, ip netip.Addr) string {
	t.Helper()
	list, err := s.Switch.Handle().NeighList(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.IP.Equal(net.IP(ip.AsSlice())) && e.State&netlink.NUD_PERMANENT != 0 {
			return e.HardwareAddr.String()
		}
	}
	return "no place"
}
