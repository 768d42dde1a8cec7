// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// forgePort is the UDP source port of packets that we make up.
const forgePort = 0xD001

// inject sends a frame out of an interface of ns, past its queue.
func inject(ns *lab.Namespace, link string, frame []byte) error {
	return ns.Do(func() error {
		i, err := net.InterfaceByName(link)
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: i.Index}); err != nil {
			return fmt.Errorf("send on %s: %w", link, err)
		}
		return nil
	})
}

// toHost sends a packet to mb as if it came from the group.
func (b *bench) toHost(g *group, mb *member, k rocev2.Packet, payload []byte) error {
	path := rocev2.Path{SrcMAC: rocev2.MAC(mac(2, mb.index)), DstMAC: rocev2.MAC(mb.mac), Src: g.ip, Dst: mb.addr(g.spec.v6), SrcPort: forgePort}
	k.DestQP = mb.qp.Info().QPN
	frame := make([]byte, 4096)
	n := rocev2.BuildPacket(frame, &path, &k, payload)
	return inject(b.sw, mb.port, frame[:n])
}

// toGroup sends a packet to the group as if mb's RNIC had sent it.
func (b *bench) toGroup(g *group, mb *member, k rocev2.Packet) error {
	to, err := b.neighbour(mb.host, g.ip)
	if err != nil {
		return err
	}
	path := rocev2.Path{SrcMAC: rocev2.MAC(mb.mac), DstMAC: rocev2.MAC(to), Src: mb.addr(g.spec.v6), Dst: g.ip, SrcPort: forgePort}
	k.DestQP = mb.group.Info().QPN
	frame := make([]byte, 4096)
	n := rocev2.BuildPacket(frame, &path, &k, nil)
	return inject(b.init, mb.link, frame[:n])
}

// neighbour returns the link address of ip in h's neighbour table.
func (b *bench) neighbour(h *host, ip netip.Addr) (net.HardwareAddr, error) {
	link, err := b.init.Handle().LinkByName(h.link)
	if err != nil {
		return nil, err
	}
	family := unix.AF_INET
	if ip.Is6() {
		family = unix.AF_INET6
	}
	all, err := b.init.Handle().NeighList(link.Attrs().Index, family)
	if err != nil {
		return nil, err
	}
	for _, n := range all {
		if a, _ := netip.AddrFromSlice(n.IP); a.Unmap() == ip && len(n.HardwareAddr) == 6 {
			return n.HardwareAddr, nil
		}
	}
	return nil, fmt.Errorf("%s has no neighbour entry for %s", h.link, ip)
}

// until waits for a condition, and fails with the present state if ctx ends first.
func until(ctx context.Context, what string, is func() (bool, error)) error {
	for {
		ok, err := is()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// watch runs do with a capture on hosts.
func watch(do func(*capture) error, hosts ...*host) error {
	c, err := listen(hosts...)
	if err != nil {
		return err
	}
	err = do(c)
	return errors.Join(err, c.stop())
}
