// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package neighbours

import (
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/rocev2"
)

// socket sends and receives the Ethernet frames of hellos at one interface.
type socket interface {
	Read(b []byte) (int, error)
	Write(b []byte) (int, error)
	SetReadDeadline(time.Time) error
	Close() error
}

// Ethernet header: destination, source, type.
const (
	sourceAt  = 6
	typeAt    = 12
	headerLen = 14
)

// receiveBuffer is the receive buffer of a socket in bytes: some hundred hellos. What a
// flood leaves there is read late, and dropped as what it is.
const receiveBuffer = 64 << 10

// priorityControl is TC_PRIO_CONTROL of linux/pkt_sched.h.
const priorityControl = 7

// bigEndian returns a number whose bytes in memory are those of n in network byte order.
func bigEndian(n uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, n))
}

// openSocket opens a packet socket for the hellos that an interface receives. Frames with a
// VLAN tag, and to another destination, are no hellos: bridges forward them.
func openSocket(p *Port) (_ socket, err error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0) // no protocol: nothing is received before bind
	if err != nil {
		return nil, fmt.Errorf("port %s: open a packet socket for hellos: %w", p.Name, err)
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	filter, err := helloFilter()
	if err != nil {
		return nil, fmt.Errorf("port %s: assemble the filter of hellos: %w", p.Name, err)
	}
	for _, set := range []func() error{
		func() error {
			return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]})
		},
		func() error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer) },
		func() error {
			if p.Ifindex == 0 {
				return nil
			}
			return bindTo(fd, p.Ifindex)
		},
	} {
		if err := set(); err != nil {
			return nil, fmt.Errorf("port %s: set up a packet socket for hellos: %w", p.Name, err)
		}
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, priorityControl) // a shorter way where the interface has several queues
	return os.NewFile(uintptr(fd), "hellos of "+p.Name), nil
}

// helloFilter is the program of the socket's filter. The kernel takes the tag off a frame of
// a VLAN without an interface before the socket gets it, and tells it by the type alone: the
// frame is for another host.
func helloFilter() ([]unix.SockFilter, error) {
	const drop, all = 0, headerLen + hello.MaxLen + 1
	d := hello.Destination
	raw, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.PACKET_MULTICAST, SkipTrue: 5},
		bpf.LoadAbsolute{Off: 0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: binary.BigEndian.Uint32(d[:]), SkipTrue: 3},
		bpf.LoadAbsolute{Off: 4, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(binary.BigEndian.Uint16(d[4:])), SkipTrue: 1},
		bpf.RetConstant{Val: all},
		bpf.RetConstant{Val: drop},
	})
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return filter, err
}

// appendHeader appends the Ethernet header of a hello.
func appendHeader(b []byte, from rocev2.MAC) []byte {
	b = append(append(b, hello.Destination[:]...), from[:]...)
	return binary.BigEndian.AppendUint16(b, hello.EtherType)
}
