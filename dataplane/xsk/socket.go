// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Desc describes a packet, or one buffer of it, in the Umem: the kernel's xdp_desc.
type Desc struct {
	Addr    uint64 // the address of the first byte
	Len     uint32 // bytes
	Options uint32
}

// PktContd in Desc.Options means that the packet continues in the next Desc. Only sockets
// opened with Config.MultiBuffer receive and accept such packets.
const PktContd = unix.XDP_PKT_CONTD

// Errors of Kick and State that callers branch on.
var (
	// ErrDown means that the interface is down. Packets in the TX ring stay there until
	// it is up and Kick is called again.
	ErrDown = errors.New("the interface is down")
	// ErrGone means that the interface no longer exists; the socket cannot be used any
	// more and should be closed.
	ErrGone = errors.New("the interface is gone")
)

// Socket is an AF_XDP socket, bound to a queue of an interface. Its methods are
// for one goroutine: each ring has a single producer and a single consumer.
// Receive, Fill, FillRoom, Send, TxRoom, Kick and Complete allocate nothing.
type Socket struct {
	umem     *Umem
	cfg      Config
	id       Owner
	fd       int
	zeroCopy bool
	gone     atomic.Bool // the interface vanished; Open of other sockets reads it

	rx, tx           ring[Desc]
	fill, completion ring[uint64]
	maps             [][]byte

	sg        bool // packets may be chains
	dropChain bool // the next descriptors in the RX ring continue a packet whose first part was received as Torn

	inFlight int  // buffers sent and not completed
	stalled  bool // the last Kick ended without progress
	kicks    uint64
	stalls   uint64
}

// Receive takes up to len(d) received packets from the RX ring and returns their number.
// Their frames then belong to the caller.
//
// With Config.MultiBuffer it takes up to len(d) descriptors, of whole packets only: a
// packet waits for the next call if some of its buffers are not in the ring yet, or do
// not fit the rest of d. A packet of more than MaxChain buffers, or of more than fit d or
// the ring, is returned as descriptors marked Torn.
func (s *Socket) Receive(d []Desc) int {
	if s.sg {
		return s.receiveChains(d)
	}
	n := min(len(d), s.rx.available(len(d)))
	if n == 0 {
		s.wakeFill()
		return 0
	}
	for i := range n {
		d[i] = s.rx.get(i)
		s.umem.Move(d[i].Addr, s.id, OwnedByWorker)
	}
	s.rx.release(n)
	return n
}

// FillRoom returns how many frames the fill ring has room for.
func (s *Socket) FillRoom() int { return s.fill.room(len(s.fill.entries)) }

// Fill gives the kernel frames to receive into, as many of addrs as there is room for,
// and returns their number. The rest still belong to the caller.
func (s *Socket) Fill(addrs []uint64) int {
	n := min(len(addrs), s.fill.room(len(addrs)))
	if n == 0 {
		return 0
	}
	for i, a := range addrs[:n] {
		s.umem.Move(a, OwnedByWorker, s.id)
		s.fill.put(i, s.umem.Base(a))
	}
	s.fill.publish(n)
	s.wakeFill()
	return n
}

// wakeFill makes a driver that has run out of frames look at the fill ring.
func (s *Socket) wakeFill() {
	if s.fill.needWakeup() && !s.gone.Load() {
		_, _, _ = unix.Syscall6(unix.SYS_RECVFROM, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	}
}

// TxRoom returns how many descriptors Send would take: the TX ring has room for them, and
// the completion ring for their return. A packet in several buffers takes one for each.
func (s *Socket) TxRoom() int {
	return min(s.tx.room(len(s.tx.entries)), len(s.completion.entries)-s.inFlight)
}

// minFrame is the least length that can be sent: an Ethernet header.
const minFrame = 14

// Send puts packets into the TX ring, as many of d as there is room for, and returns
// their number. Kick makes the kernel send them. Their frames belong to the kernel until
// Complete returns them; the rest still belong to the caller.
//
// A packet must lie within one frame and be at least as long as an Ethernet header: the
// kernel would leak the frame of any other, so Send panics.
//
// With Config.MultiBuffer a packet may have several descriptors, up to MaxChain, none of
// them empty and the first with at least an Ethernet header. Send takes all of them or
// none, so that the ring never holds a part of a packet; d must not end within one.
func (s *Socket) Send(d []Desc) int {
	if s.sg {
		return s.sendChains(d)
	}
	n := min(len(d), s.tx.room(len(d)), len(s.completion.entries)-s.inFlight)
	if n <= 0 {
		return 0
	}
	for i, p := range d[:n] {
		if p.Len < minFrame || int(p.Len) > s.umem.Room(p.Addr) || p.Options != 0 {
			badDesc(p)
		}
		s.umem.Move(p.Addr, OwnedByWorker, s.id)
		s.tx.put(i, p)
	}
	s.tx.publish(n)
	s.inFlight += n
	return n
}

func badDesc(d Desc) {
	panic(fmt.Sprintf("xsk: cannot send packet of %d bytes at %#x with options %#x: not within one frame, or not a packet", d.Len, d.Addr, d.Options))
}

// TxPending returns how many descriptors the kernel has not taken from the TX ring yet.
// They need another Kick.
func (s *Socket) TxPending() int { return s.tx.unconsumed() }

// Consumed returns how many descriptors the kernel has taken from the TX ring since the
// socket was opened, modulo 2^32, and how many it has not taken yet.
func (s *Socket) Consumed() (taken uint32, pending int) {
	pending = s.tx.unconsumed()
	return s.tx.cons, pending
}

// maxStalls is how many calls in a row Kick makes while the kernel takes nothing.
const maxStalls = 8

// Kick makes the kernel send the packets in the TX ring. In copy mode it repeats the
// system call until the ring is empty, or until the kernel has taken nothing for
// maxStalls calls: its send buffer is full or the device is busy, and TxPending then is
// not 0. After a Kick that ended so, the next one gives up after a single call without
// progress: the interface may have stopped. In zero-copy mode Kick wakes the driver, if
// that sleeps.
//
// It returns nil, ErrDown, ErrGone or an unexpected errno; no single packet causes an
// error. With nothing to send it returns nil without a system call.
func (s *Socket) Kick() error {
	tries := maxStalls
	if s.stalled {
		tries, s.stalled = 1, false
	}
	for stalls := 0; stalls < tries; {
		left := s.tx.unconsumed()
		if left == 0 || !s.tx.needWakeup() {
			return nil
		}
		s.kicks++
		_, _, e := unix.Syscall6(unix.SYS_SENDTO, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
		switch e {
		case 0:
			if s.zeroCopy {
				return nil
			}
		case unix.EAGAIN, unix.EBUSY, unix.ENOBUFS, unix.EINTR:
			// EAGAIN: the call's budget is used up, or the send buffer is full.
			// EBUSY: the device dropped a packet, whose frame is completed.
		case unix.ENETDOWN:
			return ErrDown
		case unix.ENXIO, unix.ENODEV:
			s.gone.Store(true)
			return ErrGone
		default:
			return e
		}
		if s.tx.unconsumed() == left {
			stalls++
			s.stalls++
		} else {
			stalls, tries = 0, maxStalls
		}
	}
	s.stalled = true
	return nil
}

// State finds out, by one cheap system call, whether the socket can work: it returns nil,
// ErrDown, ErrGone or an errno. The kernel does not end a poll when an interface
// vanishes, so the owner of a port that only receives must call State now and then, or
// when netlink reports a change.
func (s *Socket) State() error {
	if s.gone.Load() {
		return ErrGone
	}
	_, _, e := unix.Syscall6(unix.SYS_RECVFROM, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	switch e {
	case 0, unix.EAGAIN, unix.EINTR:
		return nil
	case unix.ENETDOWN:
		return ErrDown
	case unix.ENXIO, unix.ENODEV:
		s.gone.Store(true)
		return ErrGone
	}
	return e
}

// Complete takes up to len(addrs) frames that have been sent from the completion ring and
// returns their number. They then belong to the caller.
func (s *Socket) Complete(addrs []uint64) int {
	n := min(len(addrs), s.completion.available(len(addrs)))
	if n == 0 {
		return 0
	}
	for i := range n {
		addrs[i] = s.umem.Base(s.completion.get(i))
		s.umem.Move(addrs[i], s.id, OwnedByWorker)
	}
	s.completion.release(n)
	s.inFlight -= n
	return n
}

// FD returns the socket's file descriptor, for the XSKMAP. The Socket still owns it.
func (s *Socket) FD() int { return s.fd }

// ZeroCopy reports whether the socket is in zero-copy mode.
func (s *Socket) ZeroCopy() bool { return s.zeroCopy }

// MultiBuffer reports whether the socket was opened for packets in several
// buffers.
func (s *Socket) MultiBuffer() bool { return s.sg }

func (s *Socket) name() string { return fmt.Sprintf("%s queue %d", s.cfg.Ifname, s.cfg.Queue) }

// Stats are counters of a socket since it was opened.
type Stats struct {
	RxDropped    uint64 // packets dropped by the kernel: too long for a frame, or for another reason
	RxRingFull   uint64 // dropped: Receive was not called in time
	RxFillEmpty  uint64 // dropped: no frame to receive into
	RxInvalid    uint64 // invalid addresses in the fill ring
	TxInvalid    uint64 // invalid packets in the TX ring
	TxRingEmpty  uint64 // times that the kernel looked for a packet and found none
	Kicks        uint64 // system calls to send
	KickStalls   uint64 // those after which the TX ring was as full as before
	TxIncomplete int    // descriptors sent and not completed now
}

// Stats returns the socket's counters.
func (s *Socket) Stats() (Stats, error) {
	k, err := statistics(s.fd)
	if err != nil {
		return Stats{}, fmt.Errorf("read AF_XDP statistics of %s: %w", s.name(), err)
	}
	return Stats{
		RxDropped: k.Rx_dropped, RxRingFull: k.Rx_ring_full, RxFillEmpty: k.Rx_fill_ring_empty_descs,
		RxInvalid: k.Rx_invalid_descs, TxInvalid: k.Tx_invalid_descs, TxRingEmpty: k.Tx_ring_empty_descs,
		Kicks: s.kicks, KickStalls: s.stalls, TxIncomplete: s.inFlight,
	}, nil
}
