// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// stolenMAC is a broadcast frame from the MAC address of h.
func (a *attacker) stolenMAC(h *rigHost) []byte {
	b := a.harmless(60)
	copy(b, rocev2.BroadcastMAC[:])
	copy(b[6:], h.MAC)
	return b
}

// stolenAddress is a gratuitous ARP or an unsolicited neighbour advertisement that
// claims the address of h for the attacker's MAC address.
func (a *attacker) stolenAddress(h *rigHost) []byte {
	p := rocev2.Path{SrcMAC: rocev2.MAC(a.MAC), DstMAC: rocev2.BroadcastMAC}
	b := make([]byte, 128)
	if h.ip.Is6() {
		return b[:rocev2.BuildUnsolicitedAdvertisement(b, &p, h.ip)]
	}
	return b[:rocev2.BuildARP(b, &p, &rocev2.ARP{Op: rocev2.ARPRequest, SenderMAC: p.SrcMAC, SenderIP: h.ip, TargetIP: h.ip})]
}

// agents has all hosts of r answer envelopes, as programs that join a group do.
func (r *rig) agents() {
	r.t.Helper()
	for _, h := range r.hosts {
		if err := h.NS.Do(func() error {
			a, err := endpoint.NewHost(h.ip, endpoint.HostConfig{Auth: testAuth()})
			if err == nil {
				r.t.Cleanup(func() { a.Close() })
			}
			return err
		}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// warnings returns the lines of the switch about unconfirmed moves.
func (r *rig) warnings() (lines []string) {
	r.notes.Lock()
	defer r.notes.Unlock()
	for _, l := range r.notes.lines {
		if strings.HasPrefix(l, "true a member was seen elsewhere") {
			lines = append(lines, l)
		}
	}
	return lines
}

// placeOf returns the port and MAC address at which the switch has a member.
func (r *rig) placeOf(h *rigHost) string {
	r.t.Helper()
	g, err := r.engine.Group(r.group)
	if err != nil {
		r.t.Fatal(err)
	}
	i := slices.IndexFunc(g.Members, func(m api.Member) bool { return m.IP == h.ip })
	if i < 0 {
		return "gone"
	}
	return g.Members[i].Port + " " + g.Members[i].MAC
}

// A stranger's frames in a member's name, from its MAC address or claiming its address
// for the stranger's, draw no packet of the group to the stranger, and the transfer
// goes on; whether or not the member answers envelopes.
func TestMembersAreNotStolen(t *testing.T) {
	inNetworks(t, 3, 1, func(t *testing.T, c rigConfig) {
		for _, agents := range []bool{true, false} {
			t.Run(fmt.Sprintf("agents %v", agents), func(t *testing.T) {
				r := newRig(t, c)
				r.join()
				if agents {
					r.agents()
				}
				a := r.attacker(0)
				v := r.hosts[2]
				place := r.placeOf(v)
				w := r.watch()
				w.goodput(50 * time.Millisecond)
				begin := time.Now()
				for i := range 200 { // one is enough; the kernel's tables may be refreshed in between
					a.send([][]byte{a.stolenMAC(v), a.stolenAddress(v)}[i%2])
					time.Sleep(5 * time.Millisecond)
				}
				until(t, "an unconfirmed move", func() bool { return r.stats().Moves.Unconfirmed > 0 && len(r.warnings()) > 0 })
				w.end(t)
				for x := a.next(); x != nil; x = a.next() {
					if x.Kind == rocev2.KindRoCE {
						t.Fatalf("the stranger receives %x", x.raw)
					}
				}
				if got := r.placeOf(v); got != place {
					t.Errorf("the member is at %s, was at %s", got, place)
				}
				m, took := r.stats().Moves, time.Since(begin)
				if m.Confirmed != 0 || m.Inquiries > 10*uint64(took/time.Second+1) {
					t.Errorf("after 200 frames in %v: %+v", took, m)
				}
				lines := r.warnings()
				for _, word := range []string{v.ip.String(), a.Port, "location " + place} {
					if !strings.Contains(lines[0], word) {
						t.Errorf("no %q in %s", word, lines[0])
					}
				}
				answer := map[bool]string{true: "answer from its old location", false: "answer none"}[agents]
				if c.star.NoBridge {
					answer = "answer no inquiry: no route leads there"
				}
				if !strings.Contains(lines[0], answer) || len(lines) > 2 {
					t.Errorf("%d lines, want %q in %s", len(lines), answer, lines[0])
				}
			})
		}
	})
}

// Floods of such frames cost the group nothing.
func TestFloodsInAMembersName(t *testing.T) {
	inNetworks(t, 3, 1, func(t *testing.T, c rigConfig) {
		r := newRig(t, c)
		r.join()
		a := r.attacker(0)
		own := *r.hosts[0]
		own.MAC, own.ip = a.MAC, a.ip
		a.beside = [][]byte{a.stolenMAC(&own), a.stolenAddress(&own)} // of the stranger's own addresses
		if c.star.NoBridge && !c.v6 {
			a.beside[1] = a.asksFor(r.hosts[2].ip) // which the switch's kernel answers, too
		}
		begin := time.Now()
		frames := [][]byte{a.stolenMAC(r.hosts[1]), a.stolenAddress(r.hosts[2])}
		r.withstands(t, a, 50_000, func(i int) []byte { return frames[i%2] })
		seconds := int(time.Since(begin).Seconds()) + 1
		if n := len(r.warnings()); n == 0 || n > 2+seconds/10 {
			t.Errorf("%d warnings in %d s", n, seconds)
		}
		if n := r.stats().Control.Iterations; n > uint64(100*seconds) {
			t.Errorf("the flood has the control loop turn %d times in %d s", n, seconds)
		}
		if m := r.stats().Moves; m.Confirmed > 0 || m.Unconfirmed == 0 || m.Inquiries > uint64(2*seconds) {
			t.Errorf("moves: %+v", m)
		}
	})
}

// A stranger without a key passes the switch's Where on to the member. The Here comes
// in at the member's own port: it does not count, also not if the stranger repeats it.
func TestQuestionsArePassedOnInVain(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 4}, strangers: 1, v6: v6})
		r.join()
		r.agents()
		a := r.attacker(0)
		v := r.hosts[2]
		place := r.placeOf(v)
		w := r.watch()
		w.goodput(50 * time.Millisecond)
		a.send(a.stolenAddress(v))
		q := a.expect("the question", func(x *captured) bool { return x.Kind == rocev2.KindUDP && x.Dst() == v.ip && x.Src() == r.group })
		for range 3 {
			b := slices.Clone(q.raw)
			copy(b, v.MAC) // to the member
			a.send(b)
			copy(b, a.portMACBytes()) // and back to the switch, unchanged
			a.send(b)
			time.Sleep(20 * time.Millisecond)
		}
		until(t, "an unconfirmed move", func() bool { return r.stats().Moves.Unconfirmed > 0 })
		if m := r.stats().Moves; m.Confirmed != 0 || r.placeOf(v) != place {
			t.Errorf("IPv6 %v: %+v, the member is at %s", v6, m, r.placeOf(v))
		}
		w.end(t)
	}
}

func (a *attacker) portMACBytes() []byte { m := a.portMAC(); return m[:] }

// mobile is a rig whose last host is behind a bridge that has links to two ports of the
// switch, p4 and p3.
func mobile(t *testing.T, c rigConfig) *rig {
	t.Helper()
	c.star = lab.StarConfig{Hosts: 4, Rack: 1}
	r := newRig(t, c)
	donor := r.hosts[2]
	donor.dev.Close()
	rack := r.star.Rack
	link, err := donor.NS.Handle().LinkByName(lab.HostInterface)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(rack.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := donor.NS.Handle()
	if err := h.LinkSetDown(link); err != nil {
		t.Fatal(err)
	}
	if err := h.LinkSetName(link, "up2"); err != nil {
		t.Fatal(err)
	}
	if err := h.LinkSetNsFd(link, int(f.Fd())); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		rack.Bridge("br1", []byte{2, 0x67, 0x6c, 0x77, 0, 1}, 1500), rack.Enslave("up2", "br1"), rack.SetUp("up2"), rack.WaitUp(10 * time.Second),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r.hosts = append(r.hosts[:2:2], r.hosts[3])
	return r
}

// move plugs the mobile host into another bridge of the rack, as a virtual machine that
// migrates: the links of the switch stay up.
func (r *rig) move(bridge string) {
	r.t.Helper()
	port, err := r.star.Rack.Handle().LinkByName("r4")
	if err == nil {
		var br netlink.Link
		if br, err = r.star.Rack.Handle().LinkByName(bridge); err == nil {
			err = r.star.Rack.Handle().LinkSetMaster(port, br)
		}
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// announces has a host announce its address, as hypervisors and hosts do after a move.
func (r *rig) announces(h *rigHost) {
	r.t.Helper()
	p := rocev2.Path{SrcMAC: rocev2.MAC(h.MAC), DstMAC: rocev2.BroadcastMAC}
	b := make([]byte, 128)
	n := 0
	if h.ip.Is6() {
		n = rocev2.BuildUnsolicitedAdvertisement(b, &p, h.ip)
	} else {
		n = rocev2.BuildARP(b, &p, &rocev2.ARP{Op: rocev2.ARPRequest, SenderMAC: p.SrcMAC, SenderIP: h.ip, TargetIP: h.ip})
	}
	newTap(r.t, h.Host).send(b[:n])
}

// A receiver moves to another port in mid-transfer, and back. It confirms, the transfer
// goes on, and its unicast is forwarded there, too.
func TestAMemberMoves(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		r := mobile(t, rigConfig{v6: v6, memory: 1 << 20})
		r.join()
		r.agents()
		v := r.hosts[2]
		w := r.watch()
		w.goodput(100 * time.Millisecond)
		for i, to := range []struct{ bridge, port string }{{"br1", "p3"}, {"br0", "p4"}} {
			begin := time.Now()
			r.move(to.bridge)
			r.announces(v)
			until(t, "the move to "+to.port, func() bool { return strings.HasPrefix(r.placeOf(v), to.port+" ") })
			t.Logf("IPv6 %v: moved to %s after %v", v6, to.port, time.Since(begin))
			w.goesOn("after the move to " + to.port)
			if m := r.stats().Moves; m.Confirmed != uint64(i+1) {
				t.Errorf("%+v", m)
			}
			if d := r.hosts[1]; string(overTCP(t, d.Host, v.Host, v.ip, []byte("unicast"))) != "unicast" {
				t.Errorf("no unicast at %s", to.port)
			}
		}
		w.end(t)
		es, err := r.engine.Events(canceled(), 0)
		if err != nil || !slices.ContainsFunc(es.Events, func(e api.Event) bool {
			return e.Kind == api.EventMoved && e.Member == v.ip && strings.Contains(e.Reason, "p3") && strings.Contains(e.Reason, "confirmed by the member")
		}) {
			t.Errorf("events: %+v, %v", es, err)
		}
	}
}

// A member comes back with another MAC address, and sends an ARP request or
// solicitation for the group's: it confirms, in spite of the permanent entry that the
// switch's kernel had for it.
func TestAMemberChangesItsMAC(t *testing.T) {
	inNetworks(t, 3, 0, func(t *testing.T, c rigConfig) {
		r := newRig(t, c)
		r.join()
		r.agents()
		v := r.hosts[2]
		place := r.placeOf(v)
		mac := net.HardwareAddr{2, 0x67, 0x6c, 0x77, 0, 3}
		h := v.NS.Handle()
		link, err := h.LinkByName(lab.HostInterface)
		if err == nil {
			err = h.LinkSetHardwareAddr(link, mac)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := v.NS.Do(func() error { // drops the entry of the group's address, and resolves it again
			if err := h.LinkSetDown(link); err != nil {
				return err
			}
			if err := h.LinkSetUp(link); err != nil {
				return err
			}
			if c.v6 { // addresses go with the interface
				return v.NS.AddAddr(lab.HostInterface, netip.PrefixFrom(v.ip, 64))
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		until(t, "the link is up", func() bool { return r.ports()[2].Up })
		want := strings.Fields(place)[0] + " " + mac.String()
		until(t, "the new address", func() bool {
			_ = v.NS.Do(func() error {
				x, err := net.Dial("udp", netip.AddrPortFrom(r.group, 9).String())
				if err == nil {
					_, _ = x.Write([]byte{0})
					x.Close()
				}
				return err
			})
			time.Sleep(20 * time.Millisecond)
			return r.placeOf(v) == want
		})
		if m := r.stats().Moves; m.Confirmed != 1 {
			t.Errorf("%+v", m)
		}
		if c.star.NoBridge {
			if err := r.star.ProxyND(v.Host); err != nil {
				t.Fatal(err)
			}
		}
		if string(overTCP(t, r.hosts[1].Host, v.Host, v.ip, []byte("unicast"))) != "unicast" {
			t.Error("no unicast")
		}
	})
}

// A member that moves, without a program that answers, stays at its location by default
// until the operator moves it. In trusted networks the switch follows it.
func TestAMemberMovesAndSaysNothing(t *testing.T) {
	moved := func(r *rig) {
		r.move("br1")
		for range 20 {
			r.announces(r.hosts[2])
			time.Sleep(10 * time.Millisecond)
		}
	}
	t.Run("stay", func(t *testing.T) {
		r := mobile(t, rigConfig{})
		r.join()
		v := r.hosts[2]
		place := r.placeOf(v)
		w := r.watch()
		w.goodput(50 * time.Millisecond)
		if err := r.engine.MoveMember(r.group, v.ip, &api.MoveMember{}); err == nil {
			t.Error("a member is moved that was not seen anywhere else")
		}
		moved(r)
		until(t, "an unconfirmed move", func() bool { return r.stats().Moves.Unconfirmed > 0 })
		if got := r.placeOf(v); got != place {
			t.Errorf("the member is at %s", got)
		}
		if g, err := r.engine.Group(r.group); err != nil || !strings.HasPrefix(g.Members[2].Diagnosis, "seen at p3 "+v.MAC.String()) {
			t.Errorf("the group shows %+v, %v", g, err)
		}
		if err := r.engine.MoveMember(r.group, v.ip, &api.MoveMember{}); err != nil {
			t.Fatal(err)
		}
		if got := r.placeOf(v); !strings.HasPrefix(got, "p3 ") {
			t.Errorf("moved by hand, the member is at %s", got)
		}
		w.goesOn("after the move by hand")
		for _, m := range []*api.MoveMember{{Port: "p9"}, {MAC: "02:00:00:00:00:99"}, {Port: "p4"}} {
			if err := r.engine.MoveMember(r.group, v.ip, m); (err == nil) != (m.Port != "p9") {
				t.Errorf("%+v: %v", m, err)
			}
		}
		if err := r.engine.MoveMember(r.group, netip.MustParseAddr("10.77.0.99"), &api.MoveMember{}); err == nil {
			t.Error("a stranger is moved")
		}
		if got := r.placeOf(v); got != "p4 02:00:00:00:00:99" {
			t.Errorf("the member is at %s", got)
		}
		if err := r.engine.MoveMember(r.group, v.ip, &api.MoveMember{Port: "p3", MAC: v.MAC.String()}); err != nil {
			t.Fatal(err)
		}
		w.goodput(300 * time.Millisecond)
		w.end(t)
	})
	t.Run("follow", func(t *testing.T) {
		r := mobile(t, rigConfig{config: "unconfirmed_moves: follow\n"})
		r.join()
		v := r.hosts[2]
		w := r.watch()
		w.goodput(50 * time.Millisecond)
		moved(r)
		until(t, "the move", func() bool { return strings.HasPrefix(r.placeOf(v), "p3 ") })
		w.goesOn("after the move")
		w.end(t)
	})
	t.Run("evict", func(t *testing.T) {
		r := mobile(t, rigConfig{config: "unconfirmed_moves: evict\n", policy: "evict"})
		o := r.another(otherGroup, 0, 1, 2)
		o.c.policy = "strict"
		r.join()
		o.join()
		v := r.hosts[2]
		moved(r)
		until(t, "the eviction", func() bool { return r.placeOf(v) == "gone" })
		if o.placeOf(v) == "gone" {
			t.Error("it is evicted from a strict group, too")
		}
		if !r.said("true member evicted") {
			t.Error("the switch does not say so")
		}
	})
}
