// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Mode is how an XDP program runs on a port.
type Mode uint8

// Modes.
const (
	Auto    Mode = iota // native, and generic where the driver cannot
	Native              // the driver, before the kernel allocates an skb
	Generic             // the network stack: any driver, slower
)

// String returns the name of m.
func (m Mode) String() string {
	switch m {
	case Auto:
		return "auto"
	case Native:
		return "native"
	case Generic:
		return "generic"
	}
	return "invalid"
}

// MaxSingleBufferMTU is the largest MTU at which the kernel may let a program
// that takes frames in one buffer run natively. It is that of a veth and 4 KiB
// pages: a page, less XDP_PACKET_HEADROOM (256), struct skb_shared_info (320)
// and the Ethernet header (drivers/net/veth.c, veth_xdp_set). A driver may ask
// for less.
const MaxSingleBufferMTU = 4096 - 256 - 320 - 14

// PortProgram is the program on one port, with that port's sockets and
// counters. Its methods may be called from any goroutine, Close after all
// others.
type PortProgram struct {
	ifname    string
	ifindex   uint32 // 0: it is attached to none
	mode      Mode
	frags     bool
	nativeErr error
	steering  *Steering
	program   *ebpf.Program // the program of the steering
	maps      *steerMaps    // likewise
	slot      uint32        // the slot of the port's part of them
	link      link.Link
	clones    io.Closer // the program of tc that makes copies of frames in several buffers; nil: none
	clonesErr error     // why there is none, where there could be one
}

// Attach attaches the program to the interface
// ifindex of the calling thread's network namespace; ifname is for messages.
// No frame is redirected before [PortProgram.SetSocket]; until then group
// traffic is dropped, and counted as DropNoSocket. The error for an interface that
// already has an XDP program wraps ErrBusy.
//
// Beyond an mtu of MaxSingleBufferMTU, that of the port, Attach attaches the program that
// takes frames in several buffers (xdp.frags), in native and in generic mode alike. Up to there it attaches the one for frames
// in one buffer, and if the driver does not let that run at this MTU, the other
// one before it falls back to generic mode.
//
// If [PortProgram.Frags] then is true, the port's sockets have to be opened for several
// buffers, too, or the kernel drops frames that are longer than one.
func (s *Steering) Attach(ifindex int, ifname string, mode Mode, mtu int) (*PortProgram, error) {
	if mode > Generic {
		return nil, fmt.Errorf("attach the XDP program to %s: invalid mode %d", ifname, mode)
	}
	return s.attach(ifindex, ifname, attempts(mode, mtu))
}

// attempt is one way to run the program.
type attempt struct {
	mode  Mode // the mode; not Auto
	frags bool
}

// attempts returns the ways to try, in order.
func attempts(mode Mode, mtu int) (a []attempt) {
	jumbo := mtu > MaxSingleBufferMTU
	if mode != Generic {
		if !jumbo {
			a = append(a, attempt{Native, false})
		}
		if mtu > ethernetMTU {
			a = append(a, attempt{Native, true})
		}
	}
	if mode != Native {
		a = append(a, attempt{Generic, jumbo})
	}
	return a
}

// maxQueues is the number of RX queues of a port.
const maxQueues = 1024

// ethernetMTU is the MTU that every driver takes in one buffer.
const ethernetMTU = 1500

// attach loads and attaches the program in the first of the given ways that
// works.
func (s *Steering) attach(ifindex int, ifname string, ways []attempt) (*PortProgram, error) {
	p, err := s.newPort(ifname)
	if err != nil {
		return nil, err
	}
	var before error
	for _, way := range ways {
		err := p.tryAttach(ifindex, way)
		if err == nil {
			if way.mode == Generic {
				p.nativeErr = before
			}
			return p, nil
		}
		hopeless := !driverRefused(err)
		if before != nil {
			err = fmt.Errorf("%w (before that: %w)", err, before)
		}
		if before = err; hopeless {
			break
		}
	}
	p.release()
	return nil, before
}

// tryAttach loads and attaches the program in one way.
func (p *PortProgram) tryAttach(ifindex int, way attempt) error {
	if err := p.take(way.frags); err != nil {
		what := fmt.Sprintf("load the XDP program for %s", p.ifname)
		if way.frags {
			what += " that takes frames in several buffers (Linux 5.18 or later)"
		}
		return explain(what, err)
	}
	return p.attachTo(ifindex, p.ifname, way)
}

// take makes one of the two programs that of the port.
func (p *PortProgram) take(frags bool) (err error) {
	p.program, err = p.steering.program(frags)
	p.frags = frags
	return err
}

// attachTo attaches the loaded program to an interface in one way.
func (p *PortProgram) attachTo(ifindex int, ifname string, way attempt) error {
	flags := link.XDPDriverMode
	if way.mode == Generic {
		flags = link.XDPGenericMode
	}
	l, err := link.AttachXDP(link.XDPOptions{Program: p.program, Interface: ifindex, Flags: flags})
	if err != nil {
		return explainAttach(ifname, way, err)
	}
	p.link, p.mode, p.ifname = l, way.mode, ifname
	p.attachClones(ifindex)
	if err := p.steer(uint32(ifindex)); err != nil {
		return errors.Join(fmt.Errorf("attach the XDP program to %s: %w", ifname, err), p.Detach())
	}
	return nil
}

// attachClones attaches the program that makes copies of frames in several buffers, where the program of the port leaves
// such frames to it.
func (p *PortProgram) attachClones(ifindex int) {
	s := p.steering
	if p.clonesErr = nil; s.fast == nil || !p.frags || p.mode != Native {
		return
	}
	if p.clonesErr = s.fastErrs[kind(true)]; p.clonesErr == nil {
		p.clones, p.clonesErr = s.fast.AttachClones(ifindex)
	}
}

// Forwards reports whether the program can replicate packets by itself.
func (p *PortProgram) Forwards() bool { return p.mode == Native && (!p.frags || p.clones != nil) }

// Clones reports whether copies of frames in several buffers are made for groups whose source is at the port. err is
// the reason why not, where the program takes such frames.
func (p *PortProgram) Clones() (ok bool, err error) { return p.clones != nil, p.clonesErr }

// driverRefused reports whether another mode may succeed where err came up. Drivers
// name their reasons (MTU, queues, no XDP at all) by various errnos, so this lists
// those that do not come from the driver.
func driverRefused(err error) bool {
	for _, e := range []error{ErrBusy, unix.EPERM, unix.EACCES, unix.ENODEV, unix.ENOMEM} {
		if errors.Is(err, e) {
			return false
		}
	}
	return true
}

// Mode returns Native or Generic: how the program runs.
func (p *PortProgram) Mode() Mode { return p.mode }

// NativeError is the reason for which the program runs in generic mode although the
// mode is Auto. It is nil otherwise.
func (p *PortProgram) NativeError() error { return p.nativeErr }

// Frags reports whether the program takes frames in several buffers.
func (p *PortProgram) Frags() bool { return p.frags }

// SetSocket sends the group traffic of an RX queue to the AF_XDP socket fd,
// which must be bound to the same interface and queue. The entry goes away by
// itself when the socket is closed.
func (p *PortProgram) SetSocket(queue, fd int) error {
	if queue < 0 || queue >= maxQueues {
		return fmt.Errorf("RX queue %d of %s: the program serves queues 0 to %d", queue, p.ifname, maxQueues-1)
	}
	if err := p.maps.Xsks.Put(p.slot*maxQueues+uint32(queue), uint32(fd)); err != nil {
		return fmt.Errorf("steer RX queue %d of %s to its socket: %w", queue, p.ifname, err)
	}
	return nil
}

// Counters returns the frames that took each exit since Attach, summed over
// CPUs.
func (p *PortProgram) Counters() (Counters, error) {
	var total Counters
	for r := range total {
		n, err := p.Count(Reason(r))
		if err != nil {
			return Counters{}, err
		}
		total[r] = n
	}
	return total, nil
}

// reasonKey is the key of r in the maps by slot and reason.
func (p *PortProgram) reasonKey(r Reason) uint32 { return p.slot*uint32(NumReasons) + uint32(r) }

// Count returns the frames that took exit r since Attach, summed over CPUs.
func (p *PortProgram) Count(r Reason) (total uint64, err error) {
	var perCPU []uint64
	if err := p.maps.Counters.Lookup(p.reasonKey(r), &perCPU); err != nil {
		return 0, fmt.Errorf("read XDP counter %s of %s: %w", r, p.ifname, err)
	}
	for _, n := range perCPU {
		total += n
	}
	return total, nil
}

// LastOffender returns the source MAC address of the last frame that the guard dropped
// for reason r.
func (p *PortProgram) LastOffender(r Reason) (mac [6]byte, err error) {
	var value [8]byte
	if err := p.maps.Offenders.Lookup(p.reasonKey(r), &value); err != nil {
		return mac, fmt.Errorf("read who was the last to be dropped as %s by %s: %w", r, p.ifname, err)
	}
	return [6]byte(value[:]), nil
}

// Close detaches the program, and gives its part of the maps to others: all traffic of the port goes to the kernel again.
// It also works when the interface is gone.
func (p *PortProgram) Close() error {
	err := p.Detach()
	p.release()
	return err
}
