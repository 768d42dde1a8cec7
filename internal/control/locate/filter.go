// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A host that sends from random MAC addresses makes a bridge learn, and the kernel
// report, as many entries as it sends frames. So the socket for changes of neighbours and
// forwarding databases has a filter in the kernel: messages about other addresses than
// those in its table take no room in the socket's buffer, and no CPU time of the reader.

// Filter is a socket filter with a table of addresses.
type Filter struct {
	table *ebpf.Map
	prog  *ebpf.Program
}

// filterKey is a MAC address (kind AF_BRIDGE) or an IP address (kind: its family),
// padded.
type filterKey [24]byte

const filterKeyLen = len(filterKey{})

// The number of addresses is bounded. Memory is allocated per entry, and 16 bytes in advance, which
// takes 10 ms for the most that there may be.
const (
	minFiltered = 1 << 10
	maxFiltered = 1 << 20
)

// NewFilter makes a filter that passes no messages about neighbours yet, with room for a number of
// addresses. It needs CAP_BPF.
func NewFilter(addresses int) (*Filter, error) {
	table, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: "gleam_heard", Type: ebpf.Hash, KeySize: uint32(filterKeyLen), ValueSize: 1,
		MaxEntries: uint32(min(max(addresses, minFiltered), maxFiltered)), Flags: unix.BPF_F_NO_PREALLOC,
	})
	if err != nil {
		return nil, fmt.Errorf("make the table of a netlink filter: %w", err)
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "gleam_heard", Type: ebpf.SocketFilter, License: "GPL", Instructions: filterProgram(table),
	})
	if err != nil {
		table.Close()
		return nil, fmt.Errorf("load a netlink filter: %w", err)
	}
	return &Filter{table, prog}, nil
}

// Close frees the filter. Sockets that it is attached to keep it.
func (f *Filter) Close() error { return errors.Join(f.prog.Close(), f.table.Close()) }

// attach makes the socket receive only messages that f passes.
func (f *Filter) attach(fd int) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ATTACH_BPF, f.prog.FD())
}

// PassMAC passes messages about forwarding database entries of mac, or with hear false
// stops passing them.
func (f *Filter) PassMAC(mac MAC, hear bool) error {
	k := filterKey{0: unix.AF_BRIDGE}
	copy(k[8:], mac[:])
	return f.set(k, hear)
}

// PassNeighbour passes messages about neighbour entries of ip, or with hear false stops
// passing them.
func (f *Filter) PassNeighbour(ip netip.Addr, hear bool) error {
	k := filterKey{0: unix.AF_INET6}
	if ip.Is4() {
		k[0] = unix.AF_INET
	}
	copy(k[8:], ip.AsSlice())
	return f.set(k, hear)
}

func (f *Filter) set(k filterKey, hear bool) error {
	if hear {
		return f.table.Put(k[:], []byte{1})
	}
	if err := f.table.Delete(k[:]); !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	return nil
}

// Offsets in a message: the header, struct ndmsg, whose first byte is the family, and the
// first attribute, which for both kinds of tables is the entry's address.
const (
	offFamily = unix.NLMSG_HDRLEN
	offAttr   = unix.NLMSG_HDRLEN + unix.SizeofNdMsg
	offValue  = offAttr + unix.SizeofRtAttr
)

// filterProgram returns the filter: its result is the whole length for messages that
// pass, and for those of unexpected form; 0 for the others.
func filterProgram(table *ebpf.Map) asm.Instructions {
	const (
		key   = int16(-24) // the offset of the key on the stack
		attr  = int16(-32) // length and type of the attribute
		pass  = "pass"
		short = "ipv4"
		long  = "ipv6"
		mac   = "mac"
		look  = "look"
	)
	// load copies bytes of the message to the stack.
	load := func(off int32, to int16, n int32) asm.Instructions {
		return asm.Instructions{
			asm.Mov.Reg(asm.R1, asm.R6),
			asm.Mov.Imm(asm.R2, off),
			asm.Mov.Reg(asm.R3, asm.RFP),
			asm.Add.Imm(asm.R3, int32(to)),
			asm.Mov.Imm(asm.R4, n),
			asm.FnSkbLoadBytes.Call(),
			asm.JNE.Imm(asm.R0, 0, pass),
		}
	}
	at := func(label string, p asm.Instructions) asm.Instructions {
		p[0] = p[0].WithSymbol(label)
		return p
	}
	value := func(label string, n int32) asm.Instructions {
		return append(at(label, load(offValue, key+8, n)), asm.Ja.Label(look))
	}
	p := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.Mov.Imm(asm.R0, 0),
		asm.StoreMem(asm.RFP, key, asm.R0, asm.DWord),
		asm.StoreMem(asm.RFP, key+8, asm.R0, asm.DWord),
		asm.StoreMem(asm.RFP, key+16, asm.R0, asm.DWord),
	}
	p = append(p, load(offFamily, key, 1)...)
	p = append(p, load(offAttr, attr, unix.SizeofRtAttr)...)
	p = append(p,
		asm.LoadMem(asm.R7, asm.RFP, attr, asm.Half),   // length
		asm.LoadMem(asm.R8, asm.RFP, attr+2, asm.Half), // type
		asm.LoadMem(asm.R9, asm.RFP, key, asm.Byte),    // family
		asm.JEq.Imm(asm.R9, unix.AF_BRIDGE, "bridge"),
		asm.JNE.Imm(asm.R8, netlink.NDA_DST, pass),
		asm.JEq.Imm(asm.R7, unix.SizeofRtAttr+4, short),
		asm.JEq.Imm(asm.R7, unix.SizeofRtAttr+16, long),
		asm.Ja.Label(pass),
		asm.JNE.Imm(asm.R8, netlink.NDA_LLADDR, pass).WithSymbol("bridge"),
		asm.JEq.Imm(asm.R7, unix.SizeofRtAttr+6, mac),
		asm.Ja.Label(pass),
	)
	p = append(p, value(short, 4)...)
	p = append(p, value(long, 16)...)
	p = append(p, value(mac, 6)...)
	return append(p,
		asm.LoadMapPtr(asm.R1, table.FD()).WithSymbol(look),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, int32(key)),
		asm.FnMapLookupElem.Call(),
		asm.JNE.Imm(asm.R0, 0, pass),
		asm.Return(), // R0 is 0
		asm.Mov.Imm(asm.R0, -1).WithSymbol(pass),
		asm.Return(),
	)
}
