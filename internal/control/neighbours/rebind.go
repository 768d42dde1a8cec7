// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package neighbours

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/rocev2"
)

// SetInterface moves the hellos of a port to another interface, one of the same name that was
// made anew, or gives them its new MAC address. The socket stays: a process that has given up
// its privileges makes no packet socket.
func (r *Runtime) SetInterface(port, ifindex int, mac rocev2.MAC) error {
	l := r.byPort[port]
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ifindex != l.Ifindex {
		s, ok := l.socket.(syscall.Conn)
		if !ok {
			return errors.ErrUnsupported
		}
		raw, err := s.SyscallConn()
		if err != nil {
			return fmt.Errorf("port %s: hellos: %w", l.Name, err)
		}
		if ctl := raw.Control(func(fd uintptr) { err = bindTo(int(fd), ifindex) }); ctl != nil || err != nil {
			return fmt.Errorf("port %s: bind the packet socket for hellos to its new interface: %w", l.Name, errors.Join(ctl, err))
		}
		l.Ifindex = ifindex
	}
	l.MAC = mac
	return l.machine.SetAddress(l.now(), l.address())
}

// SetPort makes p the port of its index, or none if p has no interface: a port was added, or
// is removed. The link's socket was opened with the runtime's.
func (r *Runtime) SetPort(p Port) error {
	l := r.byPort[p.Index]
	if l == nil {
		return fmt.Errorf("port %s: no socket was opened for its hellos", p.Name)
	}
	if p.Ifindex == 0 {
		l.setLink(false, 0)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.Name, l.Ifindex = "", 0
		return nil
	}
	l.mu.Lock()
	l.Name = p.Name
	l.mu.Unlock()
	if err := r.SetInterface(p.Index, p.Ifindex, p.MAC); err != nil {
		return err
	}
	l.setLink(p.Up, p.MTU)
	return nil
}

// bindTo binds a packet socket to an interface, and joins the group of hellos there.
func bindTo(fd, ifindex int) error {
	var group [8]byte
	copy(group[:], hello.Destination[:])
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: bigEndian(hello.EtherType), Ifindex: ifindex}); err != nil {
		return err
	}
	return unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP,
		&unix.PacketMreq{Ifindex: int32(ifindex), Type: unix.PACKET_MR_MULTICAST, Alen: uint16(len(hello.Destination)), Address: group})
}
