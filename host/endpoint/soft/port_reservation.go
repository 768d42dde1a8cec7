// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/rocev2"
)

// portReservation binds UDP port 4791 of both families with sockets whose filter drops
// everything: the kernel then has a receiver for RoCEv2 packets and does not answer them
// with ICMP port unreachable. A family that the kernel lacks, or a port that another
// program holds (rdma_rxe does), is no error.
func portReservation() (fds []int, err error) {
	filter, err := dropFilter()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			for _, fd := range fds {
				unix.Close(fd)
			}
			fds = nil
		}
	}()
	for _, sa := range []unix.Sockaddr{&unix.SockaddrInet4{Port: rocev2.UDPPort}, &unix.SockaddrInet6{Port: rocev2.UDPPort}} {
		family := unix.AF_INET
		if _, is6 := sa.(*unix.SockaddrInet6); is6 {
			family = unix.AF_INET6
		}
		fd, e := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if errors.Is(e, unix.EAFNOSUPPORT) {
			continue
		}
		if e != nil {
			return fds, fmt.Errorf("UDP socket: %w", e)
		}
		fds = append(fds, fd)
		if e := attachFilter(fd, filter); e != nil {
			return fds, e
		}
		if family == unix.AF_INET6 {
			if e := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1); e != nil {
				return fds, fmt.Errorf("UDP socket: set IPV6_V6ONLY: %w", e)
			}
		}
		// Several devices in one namespace share the port.
		if e := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); e != nil {
			return fds, fmt.Errorf("UDP socket: set SO_REUSEADDR: %w", e)
		}
		e = unix.Bind(fd, sa)
		if e != nil && !errors.Is(e, unix.EADDRINUSE) && !errors.Is(e, unix.EADDRNOTAVAIL) {
			return fds, fmt.Errorf("bind UDP port %d, which keeps the kernel from answering RoCEv2 packets: %w", rocev2.UDPPort, e)
		}
	}
	return fds, nil
}
