// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/gleam-rdma/gleam/lab"
)

// dispatcherRoom is the number of XDP programs that the kernel's dispatcher calls directly
// (BPF_DISPATCHER_MAX).
const dispatcherRoom = 48

// fillDispatcher fills the kernel's XDP dispatcher: it attaches dispatcherRoom programs to
// interfaces without traffic. While the dispatcher is full, attaching and removing other
// programs does not patch kernel code. QEMU 7.2 with a thread for each CPU may miss such a
// patch: the guest panicked ("Oops: int3" in bpf_dispatcher_xdp_func) when a gleamd started
// while another one forwarded packets. The interfaces are down: their own packets, of IPv6, had the
// guest panic in the same way while the next program was attached.
func (m *machine) fillDispatcher() error {
	ns, err := m.lab.Namespace("xdp")
	if err != nil {
		return err
	}
	for i := range dispatcherRoom / 2 {
		ends := [2]lab.End{{NS: ns, Name: fmt.Sprintf("x%d", i)}, {NS: ns, Name: fmt.Sprintf("y%d", i)}}
		if err := lab.Veth(ends[0], ends[1], 1500); err != nil {
			return err
		}
		for _, e := range ends {
			if err := ns.SetDown(e.Name); err != nil {
				return err
			}
			if err := m.attachPass(e); err != nil {
				return fmt.Errorf("XDP program for %s: %w", e.Name, err)
			}
		}
	}
	return nil
}

// attachPass attaches a program of its own to an interface.
func (m *machine) attachPass(e lab.End) error {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.XDP, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2 /* XDP_PASS */), asm.Return()},
	})
	if err != nil {
		return err
	}
	defer p.Close()
	return e.NS.Do(func() error {
		i, err := net.InterfaceByName(e.Name)
		if err != nil {
			return err
		}
		l, err := link.AttachXDP(link.XDPOptions{Program: p, Interface: i.Index})
		if err != nil {
			return err
		}
		m.undo = append(m.undo, l.Close)
		return nil
	})
}
