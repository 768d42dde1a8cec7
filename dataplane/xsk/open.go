// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Mode is how frames get between the driver and the Umem.
type Mode uint8

// Modes.
const (
	Auto     Mode = iota // zero-copy, or copy if the driver does not support it
	ZeroCopy             // the device reads and writes the Umem
	Copy                 // the kernel copies: works with any driver
)

// DefaultRingSize is the number of entries of a ring whose size is left 0.
const DefaultRingSize = 2048

// Config describes a socket.
type Config struct {
	Ifindex int    // the interface's index in the calling thread's network namespace
	Ifname  string // the interface's name, for messages
	Queue   int    // RX and TX queue of the interface, from 0
	// Ring sizes in entries, powers of two; 0 means DefaultRingSize.
	RxSize, TxSize, FillSize, CompSize int
	// ZeroCopy should be Copy if the XDP program runs in generic mode, whose frames do
	// not come from the driver's queue.
	ZeroCopy Mode
	// MultiBuffer allows packets that are longer than a frame: they are received and sent
	// as chains of descriptors. It is for ports whose frames may be longer than
	// Umem.MaxReceive, which are otherwise dropped, and needs Linux 6.6 or later.
	MultiBuffer bool
}

// ErrBusy means that a queue already has an AF_XDP socket.
var ErrBusy = errors.New("another AF_XDP socket has this queue")

// busyWait bounds how long Open waits for the kernel to free a queue whose socket has
// just been closed, which takes some 20 ms (xp_release_deferred runs from a work queue,
// after RCU grace periods).
const busyWait = 500 * time.Millisecond

// Open binds a new socket to a queue. It waits up to busyWait if the queue is taken,
// since the kernel frees a queue some time after its socket is closed; if the queue stays
// taken, the error wraps ErrBusy.
//
// No packet is received before the XDP program redirects packets to FD and there are
// frames in the fill ring.
func Open(u *Umem, cfg Config) (*Socket, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("open AF_XDP socket on %s queue %d: %w", cfg.Ifname, cfg.Queue, err)
	}
	u.opening.Lock()
	defer u.opening.Unlock()
	id, ok := u.NewOwner()
	if !ok {
		return nil, errors.New("open AF_XDP socket: too many were opened on this UMEM")
	}
	modes := []bool{true, false}
	switch cfg.ZeroCopy {
	case ZeroCopy:
		modes = modes[:1]
	case Copy:
		modes = modes[1:]
	}
	var err error
	for _, zc := range modes {
		var s *Socket
		if s, err = openBusy(u, cfg, zc, id); err == nil {
			u.mu.Lock()
			u.sockets = append(u.sockets, s)
			u.mu.Unlock()
			return s, nil
		}
		if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EINVAL) {
			break // the other mode would fail too
		}
	}
	return nil, fmt.Errorf("open AF_XDP socket on %s queue %d: %w", cfg.Ifname, cfg.Queue, explain(err, cfg))
}

func (c *Config) complete() error {
	for _, r := range []struct {
		name string
		size *int
	}{{"RX", &c.RxSize}, {"TX", &c.TxSize}, {"fill", &c.FillSize}, {"completion", &c.CompSize}} {
		if *r.size == 0 {
			*r.size = DefaultRingSize
		}
		if n := *r.size; n < 1 || n > 1<<20 || n&(n-1) != 0 {
			return fmt.Errorf("%s ring of %d entries: the size must be a power of two up to 1048576", r.name, n)
		}
	}
	if c.Ifindex < 1 || c.Queue < 0 {
		return fmt.Errorf("interface index %d and queue %d: they start at 1 and 0", c.Ifindex, c.Queue)
	}
	if c.ZeroCopy > Copy {
		return fmt.Errorf("invalid mode %d", c.ZeroCopy)
	}
	return nil
}

// openBusy repeats open while the queue is taken.
func openBusy(u *Umem, cfg Config, zc bool, id Owner) (*Socket, error) {
	for _, s := range u.openSockets() {
		if s.cfg.Ifindex == cfg.Ifindex && s.cfg.Queue == cfg.Queue && !s.gone.Load() {
			return nil, unix.EBUSY // the kernel would return EINVAL, or bind it
		}
	}
	for deadline := time.Now().Add(busyWait); ; time.Sleep(time.Millisecond) {
		s, err := open(u, cfg, zc, id)
		if err == nil || !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return s, err
		}
	}
}

// open makes one attempt in one mode. id is the socket as an owner of frames.
func open(u *Umem, cfg Config, zc bool, id Owner) (_ *Socket, err error) {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, step("create it", err)
	}
	s := &Socket{umem: u, cfg: cfg, id: id, fd: fd, zeroCopy: zc, sg: cfg.MultiBuffer}
	defer func() {
		if err != nil {
			_ = s.unmap()
		}
	}()
	peers := u.peers(zc, s.sg)
	if len(peers) == 0 {
		if err := registerUmem(fd, u.mem, int(u.frameSize)); err != nil {
			return nil, step("register the UMEM", err)
		}
	}
	if err := s.makeRings(); err != nil {
		return nil, err
	}
	// The send buffer must hold a full TX ring: the default one holds fewer than 100
	// frames. Without CAP_NET_ADMIN, or for a tiny ring, the default stays. Each buffer
	// of a packet in several buffers takes a page of it.
	frame := int(u.frameSize)
	if s.sg {
		frame = max(frame, 4096)
	}
	if want := cfg.TxSize * (frame + 1024); want > 1<<17 {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, min(want, math.MaxInt32/4))
	}
	if err := s.bind(peers); err != nil {
		return nil, step("bind it", err)
	}
	return s, nil
}

// peers returns the live sockets of u that a socket with these properties can join: both
// belong to the registration.
func (u *Umem) peers(zc, sg bool) (p []*Socket) {
	for _, s := range u.openSockets() {
		if s.zeroCopy == zc && s.sg == sg && !s.gone.Load() {
			p = append(p, s)
		}
	}
	return p
}

// txBudget is the number of packets that one system call may send in copy mode: several
// times a batch, but few enough that a full ring does not block the worker for
// milliseconds.
const txBudget = 256

func (s *Socket) makeRings() error {
	for _, r := range []struct{ opt, size int }{
		{unix.XDP_UMEM_FILL_RING, s.cfg.FillSize},
		{unix.XDP_UMEM_COMPLETION_RING, s.cfg.CompSize},
		{unix.XDP_RX_RING, s.cfg.RxSize},
		{unix.XDP_TX_RING, s.cfg.TxSize},
	} {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_XDP, r.opt, r.size); err != nil {
			return step("make its rings", err)
		}
	}
	// One system call sends a batch: without this option, in copy mode, one call sends
	// only 32 packets. Kernels before 6.17 do not have it. The size of the TX ring is its
	// upper bound.
	_ = unix.SetsockoptInt(s.fd, unix.SOL_XDP, unix.XDP_MAX_TX_SKB_BUDGET, min(s.cfg.TxSize, txBudget))
	off, err := mmapOffsets(s.fd)
	if err != nil {
		return step("ask for its rings' layout", err)
	}
	err = errors.Join(
		add(s, &s.rx, unix.XDP_PGOFF_RX_RING, s.cfg.RxSize, off.Rx),
		add(s, &s.tx, unix.XDP_PGOFF_TX_RING, s.cfg.TxSize, off.Tx),
		add(s, &s.fill, unix.XDP_UMEM_PGOFF_FILL_RING, s.cfg.FillSize, off.Fr),
		add(s, &s.completion, unix.XDP_UMEM_PGOFF_COMPLETION_RING, s.cfg.CompSize, off.Cr))
	if err != nil {
		return step("map its rings", err)
	}
	return nil
}

// add maps a ring of s.
func add[T uint64 | Desc](s *Socket, r *ring[T], pgoff int64, size int, off unix.XDPRingOffset) error {
	m, mem, err := mapRing[T](s.fd, pgoff, size, off)
	if err != nil {
		return err
	}
	*r, s.maps = m, append(s.maps, mem)
	return nil
}

// bind binds s, which shares the UMEM of the first of peers that is still bound, or has
// its own registration if there are none.
func (s *Socket) bind(peers []*Socket) error {
	sa := unix.SockaddrXDP{Ifindex: uint32(s.cfg.Ifindex), QueueID: uint32(s.cfg.Queue)}
	if len(peers) == 0 {
		sa.Flags = unix.XDP_USE_NEED_WAKEUP | unix.XDP_COPY
		if s.zeroCopy {
			sa.Flags = unix.XDP_USE_NEED_WAKEUP | unix.XDP_ZEROCOPY
		}
		if s.sg {
			sa.Flags |= unix.XDP_USE_SG
		}
		return unix.Bind(s.fd, &sa)
	}
	sa.Flags = unix.XDP_SHARED_UMEM
	var err error
	for _, p := range peers {
		sa.SharedUmemFD = uint32(p.fd)
		if err = unix.Bind(s.fd, &sa); !errors.Is(err, unix.EBADF) {
			return err
		}
		p.gone.Store(true) // it is no longer bound: its interface has vanished
	}
	return err
}

// Close unbinds the socket and unmaps its rings. Afterwards only Close and Reclaim may be
// called; Reclaim returns the frames that the kernel still had.
func (s *Socket) Close() error {
	if s.fd < 0 {
		return nil
	}
	s.umem.mu.Lock()
	s.umem.sockets = slices.DeleteFunc(s.umem.sockets, func(o *Socket) bool { return o == s })
	s.umem.mu.Unlock()
	if err := s.unmap(); err != nil {
		return fmt.Errorf("close AF_XDP socket on %s: %w", s.name(), err)
	}
	return nil
}

func (s *Socket) unmap() error {
	var errs []error
	s.rx, s.tx, s.fill, s.completion = ring[Desc]{}, ring[Desc]{}, ring[uint64]{}, ring[uint64]{}
	for _, m := range s.maps {
		errs = append(errs, unix.Munmap(m))
	}
	s.maps = nil
	errs = append(errs, unix.Close(s.fd))
	s.fd = -1
	return errors.Join(errs...)
}

// Reclaim takes back frames that the kernel had when s was closed: up to len(addrs) of
// them, which then belong to the caller. It returns their number; call it until that is
// 0.
//
// In zero-copy mode the device may write into the frames for a little longer than Close
// takes, so they are reclaimed only if its interface is gone.
func (s *Socket) Reclaim(addrs []uint64) int {
	if s.fd >= 0 || s.zeroCopy && !s.gone.Load() {
		return 0
	}
	return s.umem.Reclaim(s.id, addrs)
}
