// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/rocev2"
)

// packetSocket sends frames by an interface, and reads the answers with their MAC addresses,
// which the kernel's sockets and tables do not keep: of several answers to one question the
// neighbour table has one.
type packetSocket struct {
	fd, ifindex int
	buf         []byte
}

// answersFilter passes ARP packets, ICMP, and datagrams from the port of switches.
var answersFilter = []bpf.Instruction{
	bpf.LoadAbsolute{Off: 12, Size: 2},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(rocev2.EtherTypeARP), SkipTrue: 11},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(rocev2.EtherTypeIPv6), SkipTrue: 6},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(rocev2.EtherTypeIPv4), SkipFalse: 10},
	bpf.LoadAbsolute{Off: rocev2.EthernetLen + 9, Size: 1}, // IPv4's protocol
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(rocev2.ProtoICMP), SkipTrue: 7},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(rocev2.ProtoUDP), SkipFalse: 7},
	bpf.LoadAbsolute{Off: rocev2.EthernetLen + rocev2.IPv4Len, Size: 2}, // the source port, without options
	bpf.Jump{Skip: 3},
	bpf.LoadAbsolute{Off: rocev2.EthernetLen + 6, Size: 1}, // IPv6's next header
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(rocev2.ProtoICMPv6), SkipTrue: 2},
	bpf.LoadAbsolute{Off: rocev2.EthernetLen + rocev2.IPv6Len, Size: 2},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: envelope.DefaultPort, SkipFalse: 1},
	bpf.RetConstant{Val: 1 << 16},
	bpf.RetConstant{Val: 0},
}

// openPacketSocket needs CAP_NET_RAW. The socket is in the namespace of the calling thread.
func openPacketSocket(ifindex int) (*packetSocket, error) {
	filter, err := bpf.Assemble(answersFilter)
	if err != nil {
		return nil, err
	}
	program := make([]unix.SockFilter, len(filter))
	for i, r := range filter {
		program[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a packet socket: %w", err)
	}
	all := uint16(unix.ETH_P_ALL)
	err = errors.Join(
		unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all<<8 | all>>8, Ifindex: ifindex}))
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("set up a packet socket: %w", err)
	}
	return &packetSocket{fd: fd, ifindex: ifindex, buf: make([]byte, 1<<16)}, nil
}

func (s *packetSocket) close() { unix.Close(s.fd) }

func (s *packetSocket) send(frame []byte) error {
	if err := unix.Sendto(s.fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: s.ifindex}); err != nil {
		return fmt.Errorf("send to the link: %w", err)
	}
	return nil
}

// read passes each frame that comes within d to see, until that returns false.
func (s *packetSocket) read(d time.Duration, see func(*rocev2.Frame) (more bool)) error {
	var f rocev2.Frame
	for end := time.Now().Add(d); ; {
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		wait := unix.NsecToTimeval(max(int64(left), int64(time.Millisecond)))
		if err := unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
			return fmt.Errorf("packet socket: %w", err)
		}
		n, _, err := unix.Recvfrom(s.fd, s.buf, 0)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("read from the link: %w", err)
		case rocev2.Decode(s.buf[:n], &f) == rocev2.OK && !see(&f):
			return nil
		}
	}
}
