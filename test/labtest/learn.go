// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"encoding/binary"
	"fmt"
	"net"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
)

// Learn makes the bridge that has the interface as its port learn n MAC addresses
// there, as frames of as many hosts would: MACs returns them. They age.
func Learn(t testing.TB, ns *lab.Namespace, port string, n int) {
	t.Helper()
	link, err := ns.Handle().LinkByName(port)
	if err != nil {
		t.Fatal(err)
	}
	if err := ns.Do(func() error { return learn(link.Attrs().Index, n) }); err != nil {
		t.Fatalf("have the bridge of %s learn %d addresses: %v", port, n, err)
	}
}

// LearntMAC is the i-th address that Learn has learnt.
func LearntMAC(i int) net.HardwareAddr {
	return net.HardwareAddr{0x06, 0x67, byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)}
}

// learn sends the requests by the hundred, without requesting answers.
func learn(ifindex, n int) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer unix.Close(fd)
	const (
		msgLen  = unix.NLMSG_HDRLEN + unix.SizeofNdMsg + 12 // NDA_LLADDR with 6 bytes, padded
		perSend = 100
	)
	var b []byte
	for i := range n {
		m := make([]byte, msgLen)
		binary.NativeEndian.PutUint32(m, msgLen)
		binary.NativeEndian.PutUint16(m[4:], unix.RTM_NEWNEIGH)
		binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST|unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
		nd := m[unix.NLMSG_HDRLEN:]
		nd[0] = unix.AF_BRIDGE
		binary.NativeEndian.PutUint32(nd[4:], uint32(ifindex))
		binary.NativeEndian.PutUint16(nd[8:], netlink.NUD_REACHABLE)
		nd[10] = netlink.NTF_MASTER
		a := nd[unix.SizeofNdMsg:]
		binary.NativeEndian.PutUint16(a, 10)
		binary.NativeEndian.PutUint16(a[2:], netlink.NDA_LLADDR)
		copy(a[4:], LearntMAC(i))
		b = append(b, m...)
		if (i+1)%perSend == 0 || i+1 == n {
			if err := unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
				return fmt.Errorf("send entries up to %d: %w", i, err)
			}
			b = b[:0]
		}
	}
	return nil
}
