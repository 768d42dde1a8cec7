// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Hosts can ping a group's address, IPv4 and IPv6, also before it is registered: the
// kernel's raw sockets get replies whose checksums it has verified.
func TestPingGroupAddress(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 2}})
	h := r.star.Hosts[0]
	for _, c := range []struct {
		network, group string
		from           netip.Addr
		request, reply byte
	}{
		{"ip4:icmp", "10.77.254.1", h.IPv4, 8, 0},
		{"ip4:icmp", "10.77.254.77", h.IPv4, 8, 0},
		{"ip6:ipv6-icmp", "fd77::6c65:1", h.IPv6, 128, 129},
	} {
		message := append([]byte{c.request, 0, 0, 0, 0x12, 0x34, 0, 1}, bytes.Repeat([]byte("echo"), 250)...)
		if c.request == 8 { // of ICMPv6 the kernel makes the checksum
			binary.BigEndian.PutUint16(message[2:], rocev2.Checksum(message, 0))
		}
		if err := h.NS.Do(func() error {
			conn, err := net.ListenPacket(c.network, c.from.String())
			if err != nil {
				return err
			}
			defer conn.Close()
			if _, err := conn.WriteTo(message, &net.IPAddr{IP: net.ParseIP(c.group)}); err != nil {
				return err
			}
			b := make([]byte, 2000)
			for {
				conn.SetReadDeadline(time.Now().Add(10 * time.Second))
				n, from, err := conn.ReadFrom(b)
				if err != nil {
					return err
				}
				if from.String() == c.group && n == len(message) && b[0] == c.reply && bytes.Equal(b[4:n], message[4:]) {
					return nil
				}
			}
		}); err != nil {
			t.Errorf("ping %s: %v", c.group, err)
		}
	}
}

// A port that comes up announces the groups of its members, so that a host whose link
// was down does not wait a second before its next request.
func TestLinkUpAnnouncesGroups(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}})
	r.join()
	h := r.star.Hosts[1]
	if err := h.NS.SetDown(lab.HostInterface); err != nil {
		t.Fatal(err)
	}
	until(t, "the port is down", func() bool { return r.said("true port is down") })
	time.Sleep(300 * time.Millisecond) // the announcements of the registration are over
	if err := h.NS.SetUp(lab.HostInterface); err != nil {
		t.Fatal(err)
	}
	tap := newTap(t, h)
	mac := r.ports()[1].MAC
	tap.expect("an announcement", func(c *captured) bool {
		var a rocev2.ARP
		return rocev2.DecodeARP(&c.Frame, &a) == rocev2.OK && a.SenderIP == r.group && a.TargetIP == r.group && a.SenderMAC.String() == mac
	})
}
