// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// socket is a packet socket that reads and writes frames in batches. All of the
// package's use of unsafe is in this file. Apart from wake, its methods belong
// to one goroutine.
//
// Buffers and message headers are allocated once. The headers hold pointers
// into the buffers; both live in the socket's slices, so that the garbage
// collector keeps them, and Go's heap does not move.
type socket struct {
	file *os.File // owns the descriptor
	fd   int
	raw  syscall.RawConn

	rxBuf  []byte // batch slots of rxSlot bytes
	rxSlot int
	rxMsgs []unix.Mmsghdr
	rxCtl  []byte // batch slots of ctlSlot bytes for PACKET_AUXDATA
	rxN    int
	rxErr  error

	txMsgs []unix.Mmsghdr
	txIov  []unix.Iovec
	txN    int // frames queued
	txSent int // frames of the queued ones that were sent

	readable func(fd uintptr) bool // tryRead as a value, made once
	napper   sleeper
}

// batch is the most frames that one call reads or writes.
const batch = 64

// txQueue is the number of slots for frames to send: a full batch of requests beside the
// answers to a full batch of received frames.
const txQueue = 4 * batch

// ctlSlot has room for one control message with struct tpacket_auxdata.
const ctlSlot = 64

// rawSocket makes the packet socket in the calling thread's network namespace, where it
// stays. No packet passes it before bind.
func rawSocket(ifindex int, filter []bpf.RawInstruction, rcvbuf int) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		if errors.Is(err, unix.EPERM) {
			return -1, fmt.Errorf("packet socket: %w (needs CAP_NET_RAW: run as root)", err)
		}
		return -1, fmt.Errorf("packet socket: %w", err)
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	if err := attachFilter(fd, filter); err != nil {
		return -1, err
	}
	for _, o := range []struct {
		level, name, value int
		text               string
	}{
		{unix.SOL_PACKET, unix.PACKET_AUXDATA, 1, "PACKET_AUXDATA"},
		{unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING"},
		{unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, rcvbuf, "SO_RCVBUFFORCE"},
		{unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 4 << 20, "SO_SNDBUFFORCE"},
	} {
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			return -1, fmt.Errorf("packet socket: set %s: %w", o.text, err)
		}
	}
	sa := &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: ifindex}
	if err := unix.Bind(fd, sa); err != nil {
		return -1, fmt.Errorf("packet socket: bind to interface %d: %w", ifindex, err)
	}
	return fd, nil
}

// attachFilter sets a classic BPF filter.
func attachFilter(fd int, filter []bpf.RawInstruction) error {
	prog := make([]unix.SockFilter, len(filter))
	for i, r := range filter {
		prog[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	fp := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &fp); err != nil {
		return fmt.Errorf("attach socket filter of %d instructions: %w", len(prog), err)
	}
	return nil
}

// newSocket takes ownership of fd, also on error. rxSlot is the longest frame received in
// bytes.
func newSocket(fd, rxSlot int) (*socket, error) {
	file := os.NewFile(uintptr(fd), "packet socket")
	raw, err := file.SyscallConn()
	if err == nil {
		// The poller has no deadlines for a descriptor that it does not accept.
		err = file.SetReadDeadline(time.Time{})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("packet socket: %w", err), file.Close())
	}
	s := &socket{
		file: file, fd: fd, raw: raw,
		rxBuf: make([]byte, batch*rxSlot), rxSlot: rxSlot,
		rxMsgs: make([]unix.Mmsghdr, batch), rxCtl: make([]byte, batch*ctlSlot),
		txMsgs: make([]unix.Mmsghdr, txQueue), txIov: make([]unix.Iovec, txQueue),
	}
	iov := make([]unix.Iovec, batch)
	for i := range s.rxMsgs {
		iov[i].Base = &s.rxBuf[i*rxSlot]
		iov[i].SetLen(rxSlot)
		h := &s.rxMsgs[i].Hdr
		h.Iov, h.Control = &iov[i], &s.rxCtl[i*ctlSlot]
		h.SetIovlen(1)
		h.SetControllen(ctlSlot)
	}
	for i := range s.txMsgs {
		h := &s.txMsgs[i].Hdr
		h.Iov = &s.txIov[i]
		h.SetIovlen(1)
	}
	s.readable = func(uintptr) bool { return s.tryRead() }
	return s, nil
}

// tryRead reads the waiting frames, at most a batch, and returns false if there is none.
func (s *socket) tryRead() bool {
	for i := range s.rxMsgs { // the kernel has overwritten these fields
		s.rxMsgs[i].Hdr.SetControllen(ctlSlot)
	}
	for {
		n, _, e := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(s.fd),
			uintptr(unsafe.Pointer(&s.rxMsgs[0])), uintptr(len(s.rxMsgs)), unix.MSG_DONTWAIT, 0, 0)
		acquire()
		switch e {
		case 0:
			s.rxN, s.rxErr = int(n), nil
			return true
		case unix.EINTR:
		case unix.EAGAIN:
			s.rxN, s.rxErr = 0, nil
			return false
		default: // ENETDOWN, once, when the interface goes down
			s.rxN, s.rxErr = 0, e
			return true
		}
	}
}

// waitRead is tryRead that sleeps until a frame arrives, wake is called, or the deadline
// (zero: none) has come.
func (s *socket) waitRead() error {
	err := s.raw.Read(s.readable)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.rxN, s.rxErr = 0, nil
		return nil
	}
	return err
}

// setDeadline bounds the next waitRead.
func (s *socket) setDeadline(t time.Time) { _ = s.file.SetReadDeadline(t) }

var expiredDeadline = time.Unix(1, 0)

// wake ends a waitRead or a sleep. Any goroutine may call it.
func (s *socket) wake() {
	_ = s.file.SetReadDeadline(expiredDeadline)
	s.napper.wake()
}

// frame returns received frame i, 0 <= i < rxN, until the next read, and the VLAN tag
// that the kernel removed from it, if any. truncated says that it did not fit its slot.
func (s *socket) frame(i int) (b []byte, tci uint16, tagged, truncated bool) {
	m := &s.rxMsgs[i]
	b = s.rxBuf[i*s.rxSlot : i*s.rxSlot+min(int(m.Len), s.rxSlot)]
	ctl := s.rxCtl[i*ctlSlot : i*ctlSlot+min(int(m.Hdr.Controllen), ctlSlot)]
	tci, tagged = auxVLAN(ctl)
	return b, tci, tagged, m.Hdr.Flags&unix.MSG_TRUNC != 0
}

// auxVLAN reads struct tpacket_auxdata from a control message: cmsghdr (16
// bytes), then status u32, len, snaplen u32, mac, net, vlan_tci, vlan_tpid u16.
func auxVLAN(ctl []byte) (tci uint16, ok bool) {
	const hdr = unix.SizeofCmsghdr
	if len(ctl) < hdr+20 {
		return 0, false
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&ctl[0]))
	if h.Level != unix.SOL_PACKET || h.Type != unix.PACKET_AUXDATA {
		return 0, false
	}
	status := binary.NativeEndian.Uint32(ctl[hdr:])
	return binary.NativeEndian.Uint16(ctl[hdr+16:]), status&unix.TP_STATUS_VLAN_VALID != 0
}

// txFree returns the number of free slots.
func (s *socket) txFree() int { return txQueue - s.txN }

// queue adds a frame, which must not change until it has been sent.
func (s *socket) queue(b []byte) {
	s.txIov[s.txN].Base = &b[0]
	s.txIov[s.txN].SetLen(len(b))
	s.txN++
}

// send passes queued frames to the kernel. It returns the number accepted, which is less
// than the number queued only with an error. The rest stays queued.
func (s *socket) send() (sent int, err error) {
	for s.txSent < s.txN {
		release()
		n, _, e := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(s.fd),
			uintptr(unsafe.Pointer(&s.txMsgs[s.txSent])), uintptr(min(s.txN-s.txSent, batch)), unix.MSG_DONTWAIT, 0, 0)
		if e == unix.EINTR {
			continue
		}
		if e != 0 {
			return sent, e
		}
		s.txSent += int(n)
		sent += int(n)
	}
	s.txN, s.txSent = 0, 0
	return sent, nil
}

// skip drops the first frame that is queued and not sent.
func (s *socket) skip() { s.txSent++ }

// dropQueued drops the frames queued and not sent, and returns their number.
func (s *socket) dropQueued() int {
	n := s.txN - s.txSent
	s.txN, s.txSent = 0, 0
	return n
}

func (s *socket) close() error { return errors.Join(s.napper.close(), s.file.Close()) }

func htons(v uint16) uint16 { return v<<8 | v>>8 }
