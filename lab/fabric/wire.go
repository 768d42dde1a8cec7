// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/lab"
)

// A link that is impaired or counted is two veth pairs that meet in a namespace of wires.
// There, a BPF program at the ingress of each counts frames, drops some at random, and
// redirects the others to the egress of the other, which has a queueing discipline for rate
// and delay. The ends of the link have none of these: AF_XDP sockets pass by an interface's
// queueing discipline, and by packet sockets.

// firstIndex is above the interface indexes that the kernel chooses. The index of one end of
// each veth pair is chosen here: between ends of equal index, the kernel reports the loss
// of the carrier up to a second late (net/core/link_watch.c).
const firstIndex = 1000

// wired reports whether a link leads through the wires.
func (f *Fabric) wired(l Link) bool { return l.impaired() || f.counts != nil }

// wireEnds are the interfaces of link n's wire.
func wireEnds(n int) [2]string { return [2]string{fmt.Sprintf("w%da", n), fmt.Sprintf("w%db", n)} }

// wire makes link n between its ends, that of l.A first.
func (f *Fabric) wire(n int, l Link, a, b lab.End) error {
	a.Index = firstIndex + 2*n
	if !f.wired(l) {
		return lab.Veth(a, b, l.MTU)
	}
	b.Index = firstIndex + 2*n + 1
	wireA, wireB := lab.End{NS: f.wires, Name: wireEnds(n)[0]}, lab.End{NS: f.wires, Name: wireEnds(n)[1]}
	if err := errors.Join(lab.Veth(a, wireA, l.MTU), lab.Veth(b, wireB, l.MTU)); err != nil {
		return err
	}
	if err := f.takeRedirects(f.wires, wireA.Name, wireB.Name); err != nil {
		return err
	}
	if err := f.wires.Sysctl("net.ipv6.conf."+wireA.Name+".disable_ipv6", "1"); err != nil {
		return err
	}
	if err := f.wires.Sysctl("net.ipv6.conf."+wireB.Name+".disable_ipv6", "1"); err != nil {
		return err
	}
	return errors.Join(f.impair(2*n, l, wireA.Name, wireB.Name), f.impair(2*n+1, l, wireB.Name, wireA.Name))
}

// takeRedirects makes interfaces take frames that XDP redirects to them, with Config.Redirects.
func (f *Fabric) takeRedirects(ns *lab.Namespace, names ...string) error {
	for _, name := range names {
		if f.redirects {
			if err := ns.SetFeature(name, lab.GRO, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// impair makes a direction of a wire, which begins at interface in and ends at out.
func (f *Fabric) impair(direction int, l Link, in, out string) error {
	h := f.wires.Handle()
	from, err := h.LinkByName(in)
	if err != nil {
		return fmt.Errorf("wire %s: %w", in, err)
	}
	to, err := h.LinkByName(out)
	if err != nil {
		return fmt.Errorf("wire %s: %w", out, err)
	}
	if err := shape(h, to, l); err != nil {
		return err
	}
	program := wireProgram(l.Loss, to.Attrs().Index)
	if f.counts != nil {
		program = append(countProgram(f.counts.FD(), direction), program...)
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "gleam_wire", Type: ebpf.SchedCLS, License: "GPL", Instructions: program})
	if err != nil {
		return fmt.Errorf("load the program of a wire: %w", err)
	}
	defer prog.Close() // the filter holds it
	ingress := netlink.QdiscAttrs{LinkIndex: from.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}
	if err := h.QdiscAdd(&netlink.Clsact{QdiscAttrs: ingress}); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("ingress of wire %s: %w", in, err)
	}
	filter := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: from.Attrs().Index, Parent: netlink.HANDLE_MIN_INGRESS, Handle: 1, Protocol: unix.ETH_P_ALL, Priority: 1,
		},
		Fd: prog.FD(), Name: "gleam_wire", DirectAction: true,
	}
	if err := h.FilterReplace(filter); err != nil {
		return fmt.Errorf("program of wire %s: %w", in, err)
	}
	return nil
}

// Impair gives the direction of a link that leads from one node to another one that loss, rate and delay in
// place of those that it had. The link must have a wire: see SetCarrier.
func (f *Fabric) Impair(from, to string, loss float64, rate linkrate.Rate, delay time.Duration) error {
	n, err := f.link(from, to)
	if err != nil {
		return err
	}
	l := f.topology.Links[n]
	if !f.wired(l) {
		return fmt.Errorf("fabric: link %v has no wire", l)
	}
	l.Loss, l.Rate, l.Delay = loss, rate, delay
	if err := l.check(); err != nil {
		return fmt.Errorf("fabric: link %v: %w", l, err)
	}
	direction, ends := 2*n, wireEnds(n)
	if l.A != from {
		direction, ends[0], ends[1] = direction+1, ends[1], ends[0]
	}
	out, err := f.wires.Handle().LinkByName(ends[1])
	if err != nil {
		return fmt.Errorf("fabric: link %v: %w", l, err)
	}
	if err := unshape(f.wires.Handle(), out); err != nil {
		return fmt.Errorf("fabric: link %v: %w", l, err)
	}
	return f.impair(direction, l, ends[0], ends[1])
}

// wireProgram drops that part of all frames, and redirects the others.
func wireProgram(loss float64, to int) asm.Instructions {
	const shot = 2 // TC_ACT_SHOT
	return asm.Instructions{
		asm.FnGetPrandomU32.Call().WithSymbol("wire"),
		asm.LoadImm(asm.R1, int64(loss*(1<<32)), asm.DWord),
		asm.LSh.Imm(asm.R0, 32),
		asm.RSh.Imm(asm.R0, 32),
		asm.JLT.Reg(asm.R0, asm.R1, "drop"),
		asm.Mov.Imm(asm.R1, int32(to)),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(),
		asm.Return(),
		asm.Mov.Imm(asm.R0, shot).WithSymbol("drop"),
		asm.Return(),
	}
}

const (
	queueBytes  = 256 << 10 // the queue of a link with a rate
	delayFrames = 10_000    // frames under way on a link with a delay
)

// unshape takes from an interface what shape has given it.
func unshape(h *netlink.Handle, out netlink.Link) error {
	list, err := h.QdiscList(out)
	if err != nil {
		return fmt.Errorf("queueing disciplines: %w", err)
	}
	for _, q := range list {
		if a := q.Attrs(); a.Parent == netlink.HANDLE_ROOT && a.Handle == rootHandle {
			if err := h.QdiscDel(q); err != nil {
				return fmt.Errorf("remove the %s: %w", q.Type(), err)
			}
		}
	}
	return nil
}

// rootHandle is that of a queueing discipline of a wire.
var rootHandle = netlink.MakeHandle(1, 0)

// shape gives an interface the rate and delay of l.
func shape(h *netlink.Handle, out netlink.Link, l Link) error {
	switch {
	case l.Delay > 0:
		at := netlink.QdiscAttrs{LinkIndex: out.Attrs().Index, Handle: rootHandle, Parent: netlink.HANDLE_ROOT}
		q := netlink.NewNetem(at, netlink.NetemQdiscAttrs{Latency: uint32(l.Delay.Microseconds()), Limit: delayFrames, Rate64: uint64(l.Rate) / 8})
		if err := h.QdiscAdd(q); errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("a delay needs the kernel's sch_netem, which this one does not have: %w", err)
		} else if err != nil {
			return fmt.Errorf("delay of %v: %w", l.Delay, err)
		}
	case l.Rate != linkrate.None:
		return lab.LimitRate(h, out, l.Rate, queueBytes)
	}
	return nil
}
