// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Mode is how an XDP program runs on a port.
type Mode uint8

// Modes.
const (
	Auto    Mode = iota // native, and generic where the driver cannot
	Native              // in the driver, before the kernel allocates an skb
	Generic             // in the network stack: any driver, slower
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

// PortProgram is the program on one port, with that port's sockets and
// counters. Its methods may be called from any goroutine, Close after all
// others.
type PortProgram struct {
	ifname    string
	mode      Mode
	nativeErr error
	objects   steerObjects
	link      link.Link
}

// Attach loads an instance of the program and attaches it to the interface
// ifindex of the calling thread's network namespace; ifname is for messages.
// No frame is redirected before [PortProgram.SetSocket]; until then group
// traffic is dropped, and counted as DropNoSocket.
//
// The error for an interface that already has an XDP program wraps ErrBusy.
func (s *Steering) Attach(ifindex int, ifname string, mode Mode) (*PortProgram, error) {
	p := &PortProgram{ifname: ifname}
	if err := s.load(&p.objects); err != nil {
		return nil, explain(fmt.Sprintf("load the XDP program for %s", ifname), err)
	}
	if err := p.attach(ifindex, mode); err != nil {
		p.objects.Close()
		return nil, err
	}
	return p, nil
}

// load makes an instance of the program that shares the prefix maps of s.
func (s *Steering) load(objects *steerObjects) error {
	spec, err := loadSteer()
	if err != nil {
		return err
	}
	if err := spec.Variables[steerVarEnvelopePort].Set(s.envelopePort); err != nil {
		return err
	}
	return spec.LoadAndAssign(objects, &ebpf.CollectionOptions{
		MapReplacements: map[string]*ebpf.Map{
			steerMapPrefixes4: s.prefixes4,
			steerMapPrefixes6: s.prefixes6,
		},
	})
}

func (p *PortProgram) attach(ifindex int, mode Mode) error {
	if mode > Generic {
		return fmt.Errorf("attach the XDP program to %s: invalid mode %d", p.ifname, mode)
	}
	if mode != Generic {
		err := p.attachAs(ifindex, Native)
		if err == nil || mode == Native || !driverRefused(err) {
			return err
		}
		p.nativeErr = err
	}
	err := p.attachAs(ifindex, Generic)
	if err != nil && p.nativeErr != nil {
		return fmt.Errorf("%w (before that: %w)", err, p.nativeErr)
	}
	return err
}

func (p *PortProgram) attachAs(ifindex int, mode Mode) error {
	flags := link.XDPDriverMode
	if mode == Generic {
		flags = link.XDPGenericMode
	}
	l, err := link.AttachXDP(link.XDPOptions{Program: p.objects.Steer, Interface: ifindex, Flags: flags})
	if err != nil {
		return explainAttach(p.ifname, mode, err)
	}
	p.link, p.mode = l, mode
	return nil
}

// driverRefused reports whether another mode may succeed where err came up.
// Drivers name their reasons (MTU, queues, no XDP at all) by various errnos, so
// this lists those that have nothing to do with the driver.
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

// NativeError says why the program runs in generic mode although Auto was asked
// for. It is nil otherwise.
func (p *PortProgram) NativeError() error { return p.nativeErr }

// SetSocket sends the group traffic of an RX queue to the AF_XDP socket fd,
// which must be bound to the same interface and queue. The entry goes away by
// itself when the socket is closed.
func (p *PortProgram) SetSocket(queue, fd int) error {
	if queue < 0 || uint32(queue) >= p.objects.Xsks.MaxEntries() {
		return fmt.Errorf("RX queue %d of %s: the program serves queues 0 to %d", queue, p.ifname, p.objects.Xsks.MaxEntries()-1)
	}
	if err := p.objects.Xsks.Put(uint32(queue), uint32(fd)); err != nil {
		return fmt.Errorf("steer RX queue %d of %s to its socket: %w", queue, p.ifname, err)
	}
	return nil
}

// Counters returns the frames that took each exit since Attach, summed over
// CPUs.
func (p *PortProgram) Counters() (Counters, error) {
	var total Counters
	for r := range total {
		var perCPU []uint64
		if err := p.objects.Counters.Lookup(uint32(r), &perCPU); err != nil {
			return Counters{}, fmt.Errorf("read XDP counter %s of %s: %w", Reason(r), p.ifname, err)
		}
		for _, n := range perCPU {
			total[r] += n
		}
	}
	return total, nil
}

// Close detaches the program: all traffic of the port goes to the kernel again.
// It also works when the interface is gone.
func (p *PortProgram) Close() error {
	err := errors.Join(p.link.Close(), p.objects.Close())
	if err != nil {
		return fmt.Errorf("detach the XDP program from %s: %w", p.ifname, err)
	}
	return nil
}
