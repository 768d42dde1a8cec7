// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// pinned counts the entries of the switch's kernel that no frame can change: of forwarding
// databases, of neighbours.
func pinned(t *testing.T, s *lab.Star) string {
	t.Helper()
	learnt, neighbours := 0, 0
	list, err := s.Switch.Handle().NeighList(0, unix.AF_BRIDGE)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.Flags&netlink.NTF_STICKY != 0 {
			learnt++
		}
	}
	if list, err = s.Switch.Handle().NeighList(0, unix.AF_INET); err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.State&netlink.NUD_PERMANENT != 0 {
			neighbours++
		}
	}
	return fmt.Sprintf("%d learnt, %d neighbours", learnt, neighbours)
}

// gleamd pins members in the kernel's tables. It removes the pins with their group and
// when it ends; pins of a killed gleamd go with the next start, or by gleam port
// release, and an operator's entries stay.
func TestKilledGleamdLeavesPins(t *testing.T) {
	d := newDaemon(t, 3)
	operators := &netlink.Neigh{Family: unix.AF_INET, IP: []byte{10, 77, 0, 99}, HardwareAddr: []byte{2, 0, 0, 0, 0, 9}, State: netlink.NUD_PERMANENT}
	br, err := d.star.Switch.Handle().LinkByName(lab.StarBridge)
	if err != nil {
		t.Fatal(err)
	}
	operators.LinkIndex = br.Attrs().Index
	if err := d.star.Switch.Handle().NeighSet(operators); err != nil {
		t.Fatal(err)
	}
	const none, all = "0 learnt, 1 neighbours", "3 learnt, 4 neighbours"
	become := func(want string) {
		t.Helper()
		until(t, want, func() bool { return pinned(t, d.star) == want })
	}
	reg := &api.Register{Group: group4, QPN: virtualQPN, PMTU: 1024, Policy: "evict"}
	for i, h := range d.star.Hosts {
		reg.Members = append(reg.Members, api.RegisterMember{IP: h.IPv4, QPN: api.QPN(0x100 + i)})
	}
	release := func(names ...string) (n int) {
		t.Helper()
		if err := d.star.Switch.Do(func() (err error) { n, err = locate.Release(names...); return err }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, by := range []string{"the next start", "release"} {
		p := d.start(t, d.config, nil)
		client := d.ready(t, p)
		become(none)
		for range 2 { // the second time changes nothing
			if err := client.Register(t.Context(), reg); err != nil {
				t.Fatal(err)
			}
			become(all)
		}
		if err := p.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		p.Wait()
		become(all)
		if by == "release" {
			if n := release("p1") + release(); n != 6 {
				t.Errorf("%d entries released", n)
			}
			become(none)
		}
	}
	p := d.start(t, d.config, nil)
	client := d.ready(t, p)
	for range 2 {
		if err := client.Register(t.Context(), reg); err != nil {
			t.Fatal(err)
		}
		become(all)
		if err := client.Delete(t.Context(), group4); err != nil {
			t.Fatal(err)
		}
		become(none)
	}
	if err := client.Register(t.Context(), reg); err != nil {
		t.Fatal(err)
	}
	become(all)
	// Without most of its privileges it still reports a stranger that uses a member's
	// address.
	forged := make([]byte, 60)
	copy(forged, rocev2.BroadcastMAC[:])
	copy(forged[6:], d.star.Hosts[0].MAC)
	newTap(t, d.star.Hosts[2]).send(forged)
	until(t, "a warning", func() bool { return strings.Contains(p.Output(), "a member was seen elsewhere") })
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, p.Output())
	}
	become(none)
	if strings.Contains(p.Output(), "is not pinned") {
		t.Errorf("it says that it could not pin:\n%s", p.Output())
	}
}
