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

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
)

// remake deletes the switch's port to the rack and makes it anew, with another MAC address
// for each n.
func (r *rig) remake(n int) {
	r.t.Helper()
	port := r.star.Ports[len(r.star.Ports)-1]
	if err := r.star.Switch.DeleteLink(port); err != nil {
		r.t.Fatal(err)
	}
	r.makePort(n)
}

// makePort makes the switch's port to the rack.
func (r *rig) makePort(n int) {
	r.t.Helper()
	port := r.star.Ports[len(r.star.Ports)-1]
	at := lab.End{NS: r.star.Switch, Name: port, MAC: net.HardwareAddr{2, 0x67, 0x6c, 0x0f, byte(n >> 8), byte(n)}}
	if err := lab.Veth(at, lab.End{NS: r.star.Rack, Name: "up"}, 0); err != nil {
		r.t.Fatal(err)
	}
	for ns, name := range map[*lab.Namespace]string{r.star.Switch: port, r.star.Rack: "up"} {
		if err := ns.Enslave(name, lab.StarBridge); err != nil {
			r.t.Fatal(err)
		}
	}
}

// rackRig is a rig of five hosts, the last two behind the last port together.
func rackRig(t *testing.T) *rig {
	return newRig(t, rigConfig{star: lab.StarConfig{Hosts: 5, Rack: 2}, memory: 1 << 20})
}

// A port's interface is deleted and made anew, 20 times, each time in the middle of a
// transfer to members behind it: each transfer completes, byte-equal, without a
// registration in between. Another group does not lose a packet.
func TestInterfaceMadeAnew(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	r := rackRig(t)
	r.join()
	o := r.another(otherGroup, 0, 1, 2)
	o.join()
	r.fill(0)
	for i := range rounds {
		r.fill(i % 2)
		copy(o.hosts[0].mr.Bytes(), r.hosts[i%2].mr.Bytes())
		before := r.stats().Rx
		n, m := r.post(i%2, 50_000), o.post(0, 50_000)
		until(t, "the transfers begin", func() bool { return r.stats().Rx > before+100 })
		r.remake(i)
		o.complete(o.hosts[0], m)
		r.complete(r.hosts[i%2], n)
		r.same(i % 2)
		o.same(0)
		until(t, "the port is up", func() bool {
			p := r.ports()[3]
			return p.Up && p.State == "open" && p.Reopened == uint64(i+1) && p.MAC == net.HardwareAddr{2, 0x67, 0x6c, 0x0f, 0, byte(i)}.String()
		})
	}
	if s := o.hosts[0].qp.Stats(); s.NAKs > 0 {
		t.Errorf("the other group has lost packets: its source %+v", s)
	}
	if g, err := r.engine.Group(otherGroup); err != nil || g.Repair.NAKs > 0 || len(g.Drops) > 0 { // probes are no loss
		t.Errorf("the other group: %+v, repair %+v, %v", g, g.Repair, err)
	}
	const fill = 512 // entries of the fill ring, as in the rig's configuration
	until(t, "no frame is lost", func() bool { s := r.stats(); return s.FramesFree >= s.Frames-4*fill })
}

// The switch's other workers send by a port that was made anew, too.
func TestInterfaceMadeAnewWithWorkers(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 5, Rack: 2}, memory: 1 << 20, workers: 3})
	r.join()
	var others []*rig
	for i := range 3 {
		o := r.another(netip.MustParseAddr("10.77.254.1"+string(rune('0'+i))), i, 3, 4)
		o.join()
		others = append(others, o)
	}
	for n := range 4 {
		var posted []int
		r.fill(0)
		for i, o := range others {
			copy(o.hosts[0].mr.Bytes(), r.hosts[0].mr.Bytes())
			posted = append(posted, o.post(0, 50_000+i))
		}
		r.remake(n)
		for i, o := range others {
			o.complete(o.hosts[0], posted[i])
			o.same(0)
		}
		r.write(0, 50_000)
		r.same(0)
		until(t, "the port is taken up", func() bool { return r.ports()[3].Reopened == uint64(n+1) })
	}
	const fill = 512 // entries of the fill ring, as in the rig's configuration
	until(t, "no frame is lost", func() bool { s := r.stats(); return s.FramesFree >= s.Frames-4*fill })
}

// An interface that comes with another XDP program is refused, with the reason, and taken up
// when the program has gone. Meanwhile the group of others works.
func TestInterfaceMadeAnewIsRefused(t *testing.T) {
	r := rackRig(t)
	o := r.another(otherGroup, 0, 1, 2)
	o.join()
	port := r.star.Ports[3]
	if err := r.star.Switch.DeleteLink(port); err != nil {
		t.Fatal(err)
	}
	until(t, "the port is gone", func() bool { return r.ports()[3].State == "lost" })
	stranger := r.makeBlockedPort(port)
	until(t, "the interface is refused", func() bool {
		p := r.ports()[3]
		return p.State == "refused" && strings.Contains(p.Reason, "another XDP program")
	})
	o.fill(0)
	o.write(0, 50_000)
	o.same(0)
	if err := stranger.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "the port is taken up", func() bool { p := r.ports()[3]; return p.State == "open" && p.Up })
	r.join()
	r.fill(0)
	r.write(0, 50_000)
	r.same(0)
}

// makeBlockedPort makes the switch's port to the rack with an XDP program of a stranger on
// it, before it has its name.
func (r *rig) makeBlockedPort(port string) link.Link {
	r.t.Helper()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "Apache-2.0", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}}) // XDP_PASS
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { prog.Close() })
	ns := r.star.Switch
	if err := lab.Veth(lab.End{NS: ns, Name: "other"}, lab.End{NS: r.star.Rack, Name: "up"}, 0); err != nil {
		r.t.Fatal(err)
	}
	if err := r.star.Rack.Enslave("up", lab.StarBridge); err != nil {
		r.t.Fatal(err)
	}
	var l link.Link
	if err := ns.Do(func() error {
		at, err := ns.Handle().LinkByName("other")
		if err != nil {
			return err
		}
		if l, err = link.AttachXDP(link.XDPOptions{Program: prog, Interface: at.Attrs().Index, Flags: link.XDPDriverMode}); err != nil {
			return err
		}
		return errors.Join(ns.Handle().LinkSetDown(at), ns.Handle().LinkSetName(at, port), ns.SetUp(port), ns.Enslave(port, lab.StarBridge))
	}); err != nil {
		r.t.Fatal(err)
	}
	return l
}

// The MAC address of a port's interface changes: frames leave from the new one, the hosts
// learn it, and a transfer goes on.
func TestMACChanges(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}, memory: 1 << 20})
	r.join()
	r.fill(0)
	before := r.stats().Rx
	n := r.post(0, 50_000)
	until(t, "the transfer begins", func() bool { return r.stats().Rx > before+100 })
	mac := net.HardwareAddr{2, 0x67, 0x6c, 0x0f, 0, 9}
	h := r.star.Switch.Handle()
	at, err := h.LinkByName(r.star.Ports[2])
	if err != nil {
		t.Fatal(err)
	}
	if err := h.LinkSetHardwareAddr(at, mac); err != nil {
		t.Fatal(err)
	}
	until(t, "the port has the address", func() bool {
		return r.ports()[2].MAC == mac.String() && r.said("the MAC address of a port has changed")
	})
	r.complete(r.hosts[0], n)
	r.same(0)
	until(t, "the host behind it knows the address", func() bool {
		ns := r.star.Hosts[2].NS
		list, err := ns.Handle().NeighList(0, netlink.FAMILY_V4)
		return err == nil && slices.ContainsFunc(list, func(e netlink.Neigh) bool {
			return e.IP.String() == r.group.String() && e.HardwareAddr.String() == mac.String()
		})
	})
	r.fill(2)
	r.write(2, 50_000)
	r.same(2)
}

// In the middle of a transfer an interface gets another receive queue: the port is opened again with a socket at each,
// members stay, and the transfer completes, byte-equal. Frames of a queue without a socket would be lost for good.
func TestInterfaceGetsAnotherQueue(t *testing.T) {
	channels := func(s *lab.Star, port string, n uint32) {
		t.Helper()
		if err := s.Switch.Do(func() error {
			e, err := ethtool.NewEthtool()
			if err != nil {
				return err
			}
			defer e.Close()
			c, err := e.GetChannels(port)
			if err != nil {
				return err
			}
			c.RxCount = n
			_, err = e.SetChannels(port, c)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3, Queues: 2}, memory: 4 << 20, prepare: func(s *lab.Star, config string) string {
		channels(s, s.Ports[1], 1)
		return config
	}})
	if p := r.ports()[1]; p.Queues != 1 {
		t.Fatalf("%d queues at first, want 1", p.Queues)
	}
	r.join()
	r.fill(0)
	before := r.stats().Rx
	n := r.post(0, 50_000)
	until(t, "the transfer begins", func() bool { return r.stats().Rx > before+100 })
	channels(r.star, r.star.Ports[1], 2)
	until(t, "the port has both queues", func() bool {
		p := r.ports()[1]
		return p.State == api.PortOpen && p.Up && p.Queues == 2
	})
	r.complete(r.hosts[0], n)
	r.same(0)
	for i, p := range r.ports() {
		if want := uint64(i % 2); i < 3 && p.Reopened != want {
			t.Errorf("port %s was opened again %d times, want %d", p.Name, p.Reopened, want)
		}
	}
}
