// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

var otherGroup6 = netip.MustParseAddr("fd77::6c65:2")

// asks are the frames that a host may send to the switch: data, an envelope, a request
// for the group's MAC address, a ping of the group.
func (a *attacker) asks() map[string][]byte {
	group := a.groupPath(a.ip)
	list := map[string][]byte{
		"data":     a.roce(group, rocev2.Packet{Op: rocev2.WriteOnly, DestQP: virtualQPN, VA: groupBase, RKey: groupRKey, DMALen: 64}, 64),
		"envelope": make([]byte, 256),
		"address":  a.asksFor(a.r.group),
	}
	list["envelope"] = list["envelope"][:rocev2.BuildUDP(list["envelope"], &group, 4797, make([]byte, 100))]
	return list
}

// asksFor is a request for the MAC address of ip.
func (a *attacker) asksFor(ip netip.Addr) []byte {
	b := make([]byte, 128)
	p := rocev2.Path{SrcMAC: rocev2.MAC(a.MAC), DstMAC: rocev2.BroadcastMAC, Src: a.ip}
	if ip.Is6() {
		return b[:rocev2.BuildNeighborSolicitation(b, &p, ip)]
	}
	return b[:rocev2.BuildARP(b, &p, &rocev2.ARP{Op: rocev2.ARPRequest, SenderMAC: p.SrcMAC, SenderIP: a.ip, TargetIP: ip})]
}

// served checks that the switch takes each of the attacker's frames, or drops each for
// a reason.
func (a *attacker) served(t *testing.T, reason string) {
	t.Helper()
	exits := map[string]string{"data": "xsk_rocev2", "envelope": "xsk_envelope", "address": "xsk_arp"}
	if a.ip.Is6() {
		exits["address"] = "xsk_nd"
	}
	for name, frame := range a.asks() {
		exit := exits[name]
		if reason != "" {
			exit = reason
		}
		before := a.r.ports()[a.n].XDP
		a.send(frame)
		until(t, name+": "+exit, func() bool { return a.xdp(exit) > before[exit] })
		if n := a.xdp(exits[name]) - before[exits[name]]; reason != "" && n > 0 {
			t.Errorf("%s: %d frames got through", name, n)
		}
	}
}

// bridged are the networks of a star with a bridge.
func bridged(t *testing.T, members, strangers int, f func(t *testing.T, c rigConfig)) {
	inNetworksThat(t, []bool{false}, members, strangers, f)
}

// bridgeSays waits until the switch has applied its bridge's state of a port.
func (r *rig) bridgeSays(t *testing.T, port, what string) {
	t.Helper()
	until(t, port+" "+what, func() bool {
		i := slices.IndexFunc(r.star.Ports, func(p string) bool { return p == port })
		return strings.Contains(r.ports()[i].Bridge, what)
	})
}

// Frames of a port that the bridge does not forward from are dropped, and those of a
// locked port unless the bridge has their host there.
func TestPortIsBlockedOrLocked(t *testing.T) {
	bridged(t, 3, 1, func(t *testing.T, c rigConfig) {
		r := newRig(t, c)
		r.join()
		a, sw := r.attacker(0), r.star.Switch
		a.served(t, "")
		if err := sw.SetBridgePort(a.Port, lab.PortState, lab.StateDisabled); err != nil {
			t.Fatal(err)
		}
		r.bridgeSays(t, a.Port, "blocked")
		a.served(t, "drop_port_blocked")
		if err := sw.SetBridgePort(a.Port, lab.PortState, lab.StateForwarding); err != nil {
			t.Fatal(err)
		}
		r.bridgeSays(t, a.Port, "forwarding")
		a.served(t, "")

		// Hosts with learnt entries are served at a locked port until the entries are
		// gone. The kernel would learn from link-local frames there.
		if err := errors.Join(sw.SetBridgePort(a.Port, lab.PortLearning, 0), sw.SetBridgePort(a.Port, lab.PortLocked, 1)); err != nil {
			t.Fatal(err)
		}
		known := r.forget(t, a.Port, a.MAC)
		r.bridgeSays(t, a.Port, "locked")
		until(t, "the host may not speak", func() bool { a.send(a.asks()["data"]); return a.xdp("drop_port_locked") > 0 })
		a.served(t, "drop_port_locked")
		r.saysOffence(t, a, "drop_port_locked")
		r.withstands(t, a, 50_000, func() func(i int) []byte {
			frame := a.asks()["data"]
			return func(int) []byte { return frame }
		}())
		if err := r.authorise(known); err != nil {
			t.Fatal(err)
		}
		until(t, "the host may speak", func() bool {
			n := a.xdp("xsk_rocev2")
			a.send(a.asks()["data"])
			time.Sleep(20 * time.Millisecond)
			return a.xdp("xsk_rocev2") > n
		})
		a.served(t, "")
		r.fill(0)
		r.write(0, 20_000)
		r.same(0)
	})
}

// forget deletes the bridge's learnt entry of a host, if any, and returns the entry
// that unlocks the port for it.
func (r *rig) forget(t *testing.T, port string, mac net.HardwareAddr) *netlink.Neigh {
	t.Helper()
	link, err := r.star.Switch.Handle().LinkByName(port)
	if err != nil {
		t.Fatal(err)
	}
	n := &netlink.Neigh{LinkIndex: link.Attrs().Index, Family: unix.AF_BRIDGE, Flags: netlink.NTF_MASTER, State: netlink.NUD_NOARP, HardwareAddr: mac}
	_ = r.star.Switch.Handle().NeighDel(n) // there may be none
	return n
}

func (r *rig) authorise(n *netlink.Neigh) error { return r.star.Switch.Handle().NeighAdd(n) }

// A receiver behind a port that the bridge blocks gets no data, and all of it when the
// port forwards again.
func TestMembersPortIsBlocked(t *testing.T) {
	bridged(t, 3, 0, func(t *testing.T, c rigConfig) {
		c.memory = 8 << 20
		r := newRig(t, c)
		r.join()
		if err := r.star.Switch.SetBridgePort("p3", lab.PortState, lab.StateDisabled); err != nil {
			t.Fatal(err)
		}
		until(t, "the port is blocked", func() bool { return r.said("false port is blocked by its bridge") })
		r.fill(0)
		n := r.post(0, 100_000)
		until(t, "port_down", func() bool { return r.drops()["port_down"] > 0 })
		if err := r.star.Switch.SetBridgePort("p3", lab.PortState, lab.StateForwarding); err != nil {
			t.Fatal(err)
		}
		r.complete(r.hosts[0], n)
		r.same(0)
	})
}

// Two receivers are behind isolated ports: data of a source at another port reaches
// both, and data of one of them reaches none.
func TestIsolatedPorts(t *testing.T) {
	bridged(t, 3, 0, func(t *testing.T, c rigConfig) {
		r := newRig(t, c)
		r.join()
		for _, p := range []string{"p2", "p3"} {
			if err := r.star.Switch.SetBridgePort(p, lab.PortIsolated, 1); err != nil {
				t.Fatal(err)
			}
			r.bridgeSays(t, p, "isolated")
		}
		until(t, "the group says so", func() bool {
			g, err := r.engine.Group(r.group)
			return err == nil && strings.Contains(g.IsolationText, "p2, p3")
		})
		if !r.said("true members of a group may not send") {
			t.Error("the operator was not told")
		}
		r.fill(0)
		r.write(0, 20_000)
		r.same(0)
		want := slices.Clone(r.hosts[2].mr.Bytes())
		r.fill(1)
		r.post(1, r.hosts[1].mr.Len())
		until(t, "isolated", func() bool { return r.drops()["isolated"] > 10 })
		if !slices.Equal(r.hosts[2].mr.Bytes(), want) {
			t.Error("one isolated port's data has come to another")
		}
		// Not isolated any more, it gets through.
		if err := r.star.Switch.SetBridgePort("p3", lab.PortIsolated, 0); err != nil {
			t.Fatal(err)
		}
		r.complete(r.hosts[1], 1)
		r.same(1)
		if g, err := r.engine.Group(r.group); err != nil || g.IsolationText != "" {
			t.Errorf("group: %v, %v", g, err)
		}
	})
}

// A host that is not in a port's allow lists is not served, and cannot be a member.
func TestAllowLists(t *testing.T) {
	inNetworks(t, 3, 1, func(t *testing.T, c rigConfig) {
		c.ports = map[string]string{
			"p1": "allow: {addresses: [10.77.0.1, 'fd77::/120'], macs: ['02:67:6c:01:00:01']}",
			"p4": "allow: {addresses: [10.77.9.0/24, 'fd77:9::/64']}",
		}
		r := newRig(t, c)
		r.join()
		a := r.attacker(0)
		r.fill(0)
		r.write(0, 20_000) // the first host is in its lists
		r.same(0)
		for name, frame := range a.asks() {
			before := a.xdp("drop_allow_address")
			a.send(frame)
			until(t, name, func() bool { return a.xdp("drop_allow_address") > before })
		}
		r.saysOffence(t, a, "drop_allow_address")

		group := map[bool]netip.Addr{false: otherGroup, true: otherGroup6}[c.v6]
		reg := r.another(group, 0, 1).registration()
		stranger := reg.Members[1]
		stranger.IP = a.ip
		reg.Members = append(reg.Members, stranger)
		if err := r.engine.Register(reg); err == nil || !strings.Contains(err.Error(), "not allowed") {
			t.Errorf("a member that its port does not allow: %v", err)
		}
		if !r.said("is not in the allow lists of port p4") {
			t.Error("the operator was not told why")
		}
	})
}
