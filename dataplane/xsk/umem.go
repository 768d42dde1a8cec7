// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// headroom is the number of bytes that the kernel leaves free before a received frame
// (XDP_PACKET_HEADROOM).
const headroom = unix.XDP_PACKET_HEADROOM

// Owner is the owner of a frame: the pool, the worker, or the Queue that the frame was
// given to.
type Owner uint16

// Owners. A larger value is that of a Queue: see Umem.NewOwner.
const (
	ownedByPool   Owner = iota
	OwnedByWorker       // the worker, or the goroutine that the worker passed it to
	firstSocketID
)

// Umem is memory for frames, used by any number of sockets. A frame is identified by the
// address of any of its bytes, counted from the start of the Umem.
//
// Sockets may be opened and closed by any goroutine; Close comes after all others. A
// frame's bytes belong to its owner.
type Umem struct {
	mapped    []byte // contains mem
	mem       []byte
	frameSize uint64
	shift     uint    // log2(frameSize)
	owner     []Owner // owners by frame
	nextID    Owner

	opening sync.Mutex // one socket is opened at a time
	mu      sync.Mutex
	sockets []*Socket // open ones
}

// openSockets returns the sockets that are open.
func (u *Umem) openSockets() []*Socket {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.sockets)
}

// NewUmem allocates memory for frames of frameSize bytes, which must be 2048 or 4096. A
// received packet starts 256 bytes into its frame, and so does every further buffer of a
// packet that is longer than frameSize-256 bytes.
func NewUmem(frames, frameSize int) (*Umem, error) {
	shift := uint(11)
	switch frameSize {
	case 2048:
	case 4096:
		shift = 12
	default:
		return nil, fmt.Errorf("UMEM frames of %d bytes: the size must be 2048 or 4096", frameSize)
	}
	if frames < 1 || frames > 1<<31/frameSize {
		return nil, fmt.Errorf("UMEM of %d frames: there must be 1 to %d of %d bytes", frames, 1<<31/frameSize, frameSize)
	}
	mapped, mem, err := hugeMap(frames * frameSize)
	if err != nil {
		return nil, fmt.Errorf("allocate %d MiB of UMEM: %w", frames*frameSize>>20, err)
	}
	return &Umem{
		mapped: mapped, mem: mem, frameSize: uint64(frameSize), shift: shift,
		owner: make([]Owner, frames), nextID: firstSocketID,
	}, nil
}

// hugePage is the size of a huge page, and hugeMap's alignment.
const hugePage = 2 << 20

// hugeMap maps n bytes of zeroed memory, all of it present, in huge pages if the kernel
// has them: otherwise each frame is on a page of its own, and costs a TLB miss. It
// returns the mapping and the n bytes in it.
func hugeMap(n int) (mapped, mem []byte, err error) {
	mapped, err = unix.Mmap(-1, 0, n+hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, nil, err
	}
	at := int(-addressOf(mapped) & (hugePage - 1))
	mem = mapped[at : at+n : at+n]
	_ = unix.Madvise(mem, unix.MADV_HUGEPAGE) // without huge pages it is only slower
	for i := 0; i < n; i += unix.Getpagesize() {
		mem[i] = 0
	}
	return mapped, mem, nil
}

// Frames returns the number of frames.
func (u *Umem) Frames() int { return len(u.owner) }

// FrameSize returns the size of a frame in bytes.
func (u *Umem) FrameSize() int { return int(u.frameSize) }

// MaxReceive returns the length in bytes of the longest frame that can be received in one
// buffer, Ethernet header included. The kernel drops longer ones and counts them in
// Stats.RxDropped, or they arrive in several buffers: see Config.MultiBuffer.
func (u *Umem) MaxReceive() int { return int(u.frameSize) - headroom }

// Base returns the address of the first byte of addr's frame.
func (u *Umem) Base(addr uint64) uint64 { return addr &^ (u.frameSize - 1) }

// Room returns the number of bytes from addr to the end of its frame.
func (u *Umem) Room(addr uint64) int { return int(u.frameSize - addr&(u.frameSize-1)) }

// Data returns the n bytes from addr on; their capacity ends with the frame.
func (u *Umem) Data(addr uint64, n uint32) []byte {
	end := u.Base(addr) + u.frameSize
	return u.mem[addr : addr+uint64(n) : end]
}

// Frame returns all bytes of addr's frame.
func (u *Umem) Frame(addr uint64) []byte {
	b := u.Base(addr)
	return u.mem[b : b+u.frameSize : b+u.frameSize]
}

// NewOwner returns the owner that a Queue is; ok is false if there have been too many.
func (u *Umem) NewOwner() (o Owner, ok bool) {
	if u.nextID == math.MaxUint16 {
		return 0, false
	}
	u.nextID++
	return u.nextID - 1, true
}

// Move makes to the owner of addr's frame; the owner before must be from. A Queue calls
// it for each frame that it is given and that it gives back.
func (u *Umem) Move(addr uint64, from, to Owner) {
	o := &u.owner[addr>>u.shift]
	if *o != from {
		u.checkOwner(addr, from, *o)
	}
	*o = to
}

func (u *Umem) checkOwner(addr uint64, want, have Owner) {
	panic(fmt.Sprintf("xsk: frame %#x belongs to %s, not to %s: handed on twice?",
		u.Base(addr), ownerName(have), ownerName(want)))
}

func ownerName(o Owner) string {
	switch o {
	case ownedByPool:
		return "the pool"
	case OwnedByWorker:
		return "the worker"
	}
	return fmt.Sprintf("the kernel (socket %d)", o-firstSocketID)
}

// Reclaim makes the worker the owner of up to len(addrs) frames of o, writes their
// addresses to addrs and returns their number.
func (u *Umem) Reclaim(o Owner, addrs []uint64) int {
	n := 0
	for i, have := range u.owner {
		if n == len(addrs) {
			break
		}
		if have == o {
			addrs[n] = uint64(i) << u.shift
			u.owner[i] = OwnedByWorker
			n++
		}
	}
	return n
}

// Close frees the memory. All sockets must have been closed.
func (u *Umem) Close() error {
	if open := u.openSockets(); len(open) > 0 {
		return fmt.Errorf("free UMEM: %d sockets still use it, the first on %s", len(open), open[0].name())
	}
	if u.mem == nil {
		return nil
	}
	mapped := u.mapped
	u.mapped, u.mem = nil, nil
	if err := unix.Munmap(mapped); err != nil {
		return fmt.Errorf("free UMEM: %w", err)
	}
	return nil
}
