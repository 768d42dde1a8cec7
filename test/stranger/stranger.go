// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package stranger sends from hosts of a fabric what no kernel of theirs would: claims to be other hosts, and
// acknowledgements in their names.
package stranger

import (
	"errors"
	"net/netip"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Wire sends any frame from a host, and sees what the host receives.
type Wire struct {
	Own     rocev2.MAC
	Gateway rocev2.MAC // the address by which the host reaches groups
	host    *fabric.Host
	socket  *os.File
	buf     [4096]byte
}

// New opens a wire, which is closed with the test.
func New(t testing.TB, h *fabric.Host) *Wire {
	t.Helper()
	w := &Wire{Own: rocev2.MAC(h.MAC), Gateway: GatewayMAC(t, h.Switch), host: h}
	fd, err := h.NS.PacketSocket(h.Interface, lab.AllFrames, func(fd int) error {
		return errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 20_000}),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	w.socket = os.NewFile(uintptr(fd), "stranger")
	t.Cleanup(w.Close)
	return w
}

// Close closes the wire. Another call does nothing; what is sent then is lost.
func (w *Wire) Close() { _ = w.socket.Close() }

// Send sends a frame. One that the kernel has no room for, or a link that is down, is lost.
func (w *Wire) Send(b []byte) { _, _ = w.socket.Write(b) }

// Next returns the next frame; false if none came within 20 ms.
func (w *Wire) Next(f *rocev2.Frame) bool {
	n, err := w.socket.Read(w.buf[:])
	if err != nil {
		return false
	}
	rocev2.Decode(w.buf[:n], f)
	return true
}

// Claim says that addresses are the host's own: by gratuitous ARP and advertisements, and by requests of its gateway, which
// make entries.
func (w *Wire) Claim(ipv4, ipv6 netip.Addr) {
	var b [128]byte
	path := rocev2.Path{SrcMAC: w.Own, DstMAC: w.Gateway, Src: ipv6}
	for _, target := range []netip.Addr{ipv4, Gateway(ipv4)} {
		w.Send(b[:rocev2.BuildARP(b[:], &path, &rocev2.ARP{Op: rocev2.ARPRequest, SenderMAC: w.Own, SenderIP: ipv4, TargetIP: target})])
	}
	toSwitch := func(n int) { // alone: hosts still find each other
		copy(b[:], w.Gateway[:])
		w.Send(b[:n])
	}
	toSwitch(rocev2.BuildUnsolicitedAdvertisement(b[:], &path, ipv6))
	toSwitch(rocev2.BuildNeighborSolicitation(b[:], &path, Gateway(ipv6)))
}

// Pose claims to be another host, where both are behind one bridge, which learns its address as well, and acknowledges PSNs
// of a group in its name, from the own MAC address and from that of the other host.
func (w *Wire) Pose(as *fabric.Host, ip, group netip.Addr, number rocev2.QPN, psns ...rocev2.PSN) {
	if as.Switch == w.host.Switch {
		w.Claim(as.IPv4, as.IPv6)
		learn := make([]byte, 60) // a frame for the bridge's forwarding database
		copy(learn, w.Gateway[:])
		copy(learn[6:], as.MAC)
		learn[12], learn[13] = 0x88, 0xB5 // the EtherType of local experiments
		w.Send(learn)
	}
	var b [256]byte
	for _, src := range []rocev2.MAC{w.Own, rocev2.MAC(as.MAC)} {
		p := rocev2.Path{SrcMAC: src, DstMAC: w.Gateway, Src: ip, Dst: group, SrcPort: 0xC123}
		for _, psn := range psns {
			w.Send(b[:rocev2.BuildAck(b[:], &p, number, psn, rocev2.SyndromeACK, 0, false)])
		}
	}
}

// Gateway is the address of the bridge of a host's switch.
func Gateway(ip netip.Addr) netip.Addr {
	b := ip.AsSlice()
	b[len(b)-1] = 254
	a, _ := netip.AddrFromSlice(b)
	return a
}

// GatewayMAC is the MAC address of the bridge of a switch, by which its hosts reach groups.
func GatewayMAC(t testing.TB, s *fabric.Switch) rocev2.MAC {
	t.Helper()
	l, err := s.NS.Handle().LinkByName("br0")
	if err != nil {
		t.Fatal(err)
	}
	return rocev2.MAC(l.Attrs().HardwareAddr)
}
