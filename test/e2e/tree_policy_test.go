// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/rocev2"
)

// listsAtLinks, among further lines of the configuration, gives the ports between switches lists
// that no host is in.
const listsAtLinks = "# lists at links\n"

func withListsAtLinks(s *fabric.Switch, text string) string {
	for _, p := range s.Neighbours() {
		text = strings.Replace(text, "  - name: "+p+"\n", "  - {name: "+p+", allow: {macs: [\"02:00:00:00:99:99\"], addresses: [192.0.2.0/24]}}\n", 1)
	}
	return text
}

// TestTreeOverPortsWithLists: the ports between switches have lists that no host is in. The
// neighbour's registrations, data and feedback pass, a host's frames do not, from whatever
// address; and once the neighbour is down, its MAC address is a host's.
func TestTreeOverPortsWithLists(t *testing.T) {
	r := newFabricRig(t, fabric.Config{Topology: twoSwitches(t)}, patient+listsAtLinks, false)
	m := r.join(r.fabricGroup(0), treeMemory/4, r.hosts...)
	for _, from := range []int{0, 3, 1} {
		m.mustSend(from, treeMessage)
	}
	l1, l2 := r.fab.Switches[0], r.fab.Switches[1]
	link, err := l1.NS.Handle().LinkByName(l1.Neighbours()[0])
	if err != nil {
		t.Fatal(err)
	}
	dropped := func() uint64 {
		ports, err := r.engines[l2.Name].Ports()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range ports {
			if p.Name == l2.Neighbours()[0] {
				return p.XDP["drop_allow_mac"]
			}
		}
		t.Fatal("no such port")
		return 0
	}
	send := func(from net.HardwareAddr) {
		t.Helper()
		path := rocev2.Path{SrcMAC: rocev2.MAC(from), DstMAC: rocev2.MAC{2}, Src: r.hosts[0].IP, Dst: r.fabricGroup(0)}
		b := make([]byte, 256)
		n := rocev2.BuildPacket(b, &path, &rocev2.Packet{Op: rocev2.SendOnly, DestQP: 0x11}, nil)
		if err := l1.NS.Do(func() error { return sendFrame(link.Attrs().Index, b[:n]) }); err != nil {
			t.Fatal(err)
		}
	}
	if n := dropped(); n != 0 {
		t.Errorf("%d frames of the neighbour were dropped", n)
	}
	until(t, "frames of a host are dropped", func() bool {
		send(net.HardwareAddr{2, 0, 0, 0, 0xBB, 1})
		return dropped() > 0
	})
	m.mustSend(2, treeMessage)
	before := dropped()
	send(link.Attrs().HardwareAddr)
	if n := dropped(); n != before {
		t.Errorf("%d frames with the neighbour's address were dropped while it was up", n-before)
	}
	r.engines[l1.Name].stop()
	until(t, "frames with the address of a neighbour that is down are dropped", func() bool {
		send(link.Attrs().HardwareAddr)
		return dropped() > before
	})
}

// sendFrame sends a frame by an interface of the calling thread's namespace.
func sendFrame(ifindex int, frame []byte) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: ifindex})
}
