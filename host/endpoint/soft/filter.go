// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/net/bpf"

	"github.com/gleam-rdma/gleam/rocev2"
)

// maxFilterAddrs bounds the addresses in the filter: its jumps reach 255
// instructions.
const maxFilterAddrs = 16

// Offsets in bytes, in a frame whose IP header begins at l3.
const (
	offEtherType = 12
	offIPv4Frag  = 6
	offIPv4Proto = 9
	offIPv4Dst   = 16
	offIPv6Next  = 6
	offIPv6Dst   = 24
)

// roceFilter passes whole RoCEv2 frames to addrs, and nothing else. The kernel removes
// the outer VLAN tag before a packet socket sees a frame, but not a second one, and some
// drivers leave the outer one; so one tag in band passes too.
func roceFilter(addrs []netip.Addr) ([]bpf.RawInstruction, error) {
	if len(addrs) == 0 || len(addrs) > maxFilterAddrs {
		return nil, fmt.Errorf("%d addresses: want 1 to %d", len(addrs), maxFilterAddrs)
	}
	a := newAsm()
	a.ins(bpf.LoadAbsolute{Off: offEtherType, Size: 2})
	a.jump(bpf.JumpEqual, uint32(rocev2.EtherTypeIPv4), "v4", "")
	a.jump(bpf.JumpEqual, uint32(rocev2.EtherTypeIPv6), "v6", "")
	a.jump(bpf.JumpEqual, uint32(rocev2.EtherTypeVLAN), "", "drop")
	a.ins(bpf.LoadAbsolute{Off: offEtherType + rocev2.VLANLen, Size: 2})
	a.jump(bpf.JumpEqual, uint32(rocev2.EtherTypeIPv4), "v4tagged", "")
	a.jump(bpf.JumpEqual, uint32(rocev2.EtherTypeIPv6), "v6tagged", "drop")
	a.label("drop")
	a.ins(bpf.RetConstant{Val: 0})
	a.label("v4")
	a.ipv4(rocev2.EthernetLen, addrs)
	a.label("v4tagged")
	a.ipv4(rocev2.EthernetLen+rocev2.VLANLen, addrs)
	a.label("v6")
	a.ipv6(rocev2.EthernetLen, addrs)
	a.label("v6tagged")
	a.ipv6(rocev2.EthernetLen+rocev2.VLANLen, addrs)
	return a.assemble()
}

// dropFilter passes nothing.
func dropFilter() ([]bpf.RawInstruction, error) {
	return bpf.Assemble([]bpf.Instruction{bpf.RetConstant{Val: 0}})
}

// asm assembles a filter whose jumps name labels. Every block has a drop of its
// own, and the dispatch's comes first: a conditional jump reaches 255
// instructions.
type asm struct {
	prog   []bpf.Instruction
	labels map[string]int
	fixups []fixup
}

type fixup struct {
	at  int
	to  string
	yes bool // label to jump to if the test holds
}

func newAsm() *asm { return &asm{labels: make(map[string]int)} }

func (a *asm) ins(i bpf.Instruction) { a.prog = append(a.prog, i) }

func (a *asm) label(l string) { a.labels[l] = len(a.prog) }

// jump appends a conditional jump; an empty label stands for the next instruction.
func (a *asm) jump(c bpf.JumpTest, v uint32, yes, no string) {
	if yes != "" {
		a.fixups = append(a.fixups, fixup{len(a.prog), yes, true})
	}
	if no != "" {
		a.fixups = append(a.fixups, fixup{len(a.prog), no, false})
	}
	a.ins(bpf.JumpIf{Cond: c, Val: v})
}

// ipv4 passes UDP to RoCE's port at one of addrs, not fragmented.
func (a *asm) ipv4(l3 uint32, addrs []netip.Addr) {
	drop, pass := fmt.Sprintf("drop4-%d", l3), fmt.Sprintf("pass4-%d", l3)
	a.ins(bpf.LoadAbsolute{Off: l3 + offIPv4Proto, Size: 1})
	a.jump(bpf.JumpEqual, uint32(rocev2.ProtoUDP), "", drop)
	a.ins(bpf.LoadAbsolute{Off: l3 + offIPv4Frag, Size: 2})
	a.jump(bpf.JumpBitsSet, 0x3FFF, drop, "")
	a.ins(bpf.LoadMemShift{Off: l3}) // X = header length
	a.ins(bpf.LoadIndirect{Off: l3 + 2, Size: 2})
	a.jump(bpf.JumpEqual, rocev2.UDPPort, "", drop)
	a.ins(bpf.LoadAbsolute{Off: l3 + offIPv4Dst, Size: 4})
	for _, ip := range addrs {
		if ip.Is4() {
			b := ip.As4()
			a.jump(bpf.JumpEqual, binary.BigEndian.Uint32(b[:]), pass, "")
		}
	}
	a.label(drop)
	a.ins(bpf.RetConstant{Val: 0})
	a.label(pass)
	a.ins(bpf.RetConstant{Val: 1<<32 - 1})
}

// ipv6 passes UDP to RoCE's port at one of addrs, without extension headers.
func (a *asm) ipv6(l3 uint32, addrs []netip.Addr) {
	drop := fmt.Sprintf("drop6-%d", l3)
	a.ins(bpf.LoadAbsolute{Off: l3 + offIPv6Next, Size: 1})
	a.jump(bpf.JumpEqual, uint32(rocev2.ProtoUDP), "", drop)
	a.ins(bpf.LoadAbsolute{Off: l3 + rocev2.IPv6Len + 2, Size: 2})
	a.jump(bpf.JumpEqual, rocev2.UDPPort, "", drop)
	for i, ip := range addrs {
		if !ip.Is6() {
			continue
		}
		next := fmt.Sprintf("next6-%d-%d", l3, i)
		b := ip.As16()
		for w := uint32(0); w < 16; w += 4 {
			a.ins(bpf.LoadAbsolute{Off: l3 + offIPv6Dst + w, Size: 4})
			a.jump(bpf.JumpEqual, binary.BigEndian.Uint32(b[w:w+4]), "", next)
		}
		a.ins(bpf.RetConstant{Val: 1<<32 - 1})
		a.label(next)
	}
	a.label(drop)
	a.ins(bpf.RetConstant{Val: 0})
}

// assemble resolves the labels.
func (a *asm) assemble() ([]bpf.RawInstruction, error) {
	for _, f := range a.fixups {
		to, ok := a.labels[f.to]
		skip := to - f.at - 1
		if !ok || skip < 0 || skip > 255 {
			return nil, fmt.Errorf("socket filter: jump from %d to %q is out of reach", f.at, f.to)
		}
		j := a.prog[f.at].(bpf.JumpIf)
		if f.yes {
			j.SkipTrue = uint8(skip)
		} else {
			j.SkipFalse = uint8(skip)
		}
		a.prog[f.at] = j
	}
	return bpf.Assemble(a.prog)
}
