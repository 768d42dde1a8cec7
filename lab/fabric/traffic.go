// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Traffic is what one end of a link has sent, whether or not the link lost it.
type Traffic struct {
	GroupData     Frames // RoCEv2 of or to a group's address, without its feedback
	GroupFeedback Frames // ACK, NAK, RNR NAK and CNP of or to a group's address
	Data          Frames // other RoCEv2
	Feedback      Frames
	Envelopes     Frames // frames of registrations
	Other         Frames
}

// Frames are frames and their bytes, Ethernet headers included.
type Frames struct {
	Frames, Bytes uint64
}

// Sub returns the traffic since an earlier reading.
func (t Traffic) Sub(old Traffic) Traffic {
	sub := func(a, b Frames) Frames { return Frames{a.Frames - b.Frames, a.Bytes - b.Bytes} }
	return Traffic{
		GroupData: sub(t.GroupData, old.GroupData), GroupFeedback: sub(t.GroupFeedback, old.GroupFeedback),
		Data: sub(t.Data, old.Data), Feedback: sub(t.Feedback, old.Feedback),
		Envelopes: sub(t.Envelopes, old.Envelopes), Other: sub(t.Other, old.Other),
	}
}

// Classes of frames, in the order of the map of counts.
const (
	classGroupData = iota
	classGroupFeedback
	classData // classGroupData + 2
	classFeedback
	classEnvelopes
	classOther
	numClasses
)

// newCounts makes the map of counts: of each link its two directions, of each of these the
// classes, of each of these a Frames.
func newCounts(links int) (*ebpf.Map, error) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: "gleam_counts", Type: ebpf.Array, KeySize: 4, ValueSize: 16, MaxEntries: uint32(2 * links * numClasses),
	})
	if err != nil {
		return nil, fmt.Errorf("make the counters of links: %w", err)
	}
	return m, nil
}

// Traffic returns what node a has sent on its link to node b.
func (f *Fabric) Traffic(a, b string) (t Traffic, err error) {
	if f.counts == nil {
		return t, errors.New("fabric: its links are not counted (Config.Count)")
	}
	direction := slices.IndexFunc(f.topology.Links, func(l Link) bool { return l.A == a && l.B == b }) * 2
	if direction < 0 {
		direction = slices.IndexFunc(f.topology.Links, func(l Link) bool { return l.A == b && l.B == a })*2 + 1
	}
	if direction < 0 {
		return t, fmt.Errorf("fabric: there is no link between %s and %s", a, b)
	}
	for class, to := range []*Frames{&t.GroupData, &t.GroupFeedback, &t.Data, &t.Feedback, &t.Envelopes, &t.Other} {
		if err := f.counts.Lookup(uint32(direction*numClasses+class), to); err != nil {
			return t, fmt.Errorf("read the counters of link %s-%s: %w", a, b, err)
		}
	}
	return t, nil
}

// Offsets and values of packets' fields.
const (
	etherTypeAt = 12
	ipAt        = 14
	ipv4Len     = 20 // the length without options; packets with options are Other
	ipv6Len     = 40
	protoUDP    = 17
	portRoCEv2  = 4791
	portGleam   = 4797 // the UDP port of envelopes
	udpAndBTH   = 20
	opACK       = 0x11
	opCNP       = 0x81
)

// countProgram counts a frame of a direction. It jumps to the symbol "wire", which follows.
func countProgram(counts, direction int) asm.Instructions {
	const (
		ip    = -64 // the offset on the stack: the IP header
		l4    = -24 // UDP header and BTH
		index = -72
	)
	be16 := func(v uint16) int32 { return int32(bits.ReverseBytes16(v)) }
	load := func(at, to, n int32) asm.Instructions {
		return asm.Instructions{
			asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, at), asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, to),
			asm.Mov.Imm(asm.R4, n), asm.FnSkbLoadBytes.Call(), asm.JNE.Imm(asm.R0, 0, "count"),
		}
	}
	four, six := GroupsIPv4.Addr().As4(), GroupsIPv6.Addr().As16()
	// R6 is the context, R7 the class, R8 what is added to it.
	p := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1), asm.Mov.Imm(asm.R7, classOther), asm.Mov.Imm(asm.R8, 0)}
	p = append(p, load(etherTypeAt, l4, 2)...)
	p = append(p,
		asm.LoadMem(asm.R1, asm.RFP, l4, asm.Half),
		asm.JEq.Imm(asm.R1, be16(0x0800), "four"),
		asm.JNE.Imm(asm.R1, be16(0x86dd), "count"),
	)
	p = append(p, load(ipAt, ip, ipv6Len)...)
	p = append(p,
		asm.LoadMem(asm.R1, asm.RFP, ip+6, asm.Byte),
		asm.JNE.Imm(asm.R1, protoUDP, "count"),
		asm.LoadMem(asm.R2, asm.RFP, ip+8, asm.Half), // the first 4 bytes tell groups from others
		asm.LoadMem(asm.R3, asm.RFP, ip+10, asm.Half),
		asm.LoadMem(asm.R4, asm.RFP, ip+24, asm.Half),
		asm.LoadMem(asm.R5, asm.RFP, ip+26, asm.Half),
		asm.JNE.Imm(asm.R2, be16(uint16(six[0])<<8|uint16(six[1])), "six-to"),
		asm.JEq.Imm(asm.R3, be16(uint16(six[2])<<8|uint16(six[3])), "six-udp"),
		asm.JNE.Imm(asm.R4, be16(uint16(six[0])<<8|uint16(six[1])), "six-unicast").WithSymbol("six-to"),
		asm.JEq.Imm(asm.R5, be16(uint16(six[2])<<8|uint16(six[3])), "six-udp"),
		asm.Mov.Imm(asm.R8, classData).WithSymbol("six-unicast"),
		asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("six-udp"),
	)
	p = append(p, load(ipAt+ipv6Len, l4, udpAndBTH)...)
	p = append(p, asm.Ja.Label("udp"))
	begin := len(p)
	p = append(p, load(ipAt, ip, ipv4Len)...)
	p[begin] = p[begin].WithSymbol("four")
	p = append(p,
		asm.LoadMem(asm.R1, asm.RFP, ip, asm.Byte),
		asm.JNE.Imm(asm.R1, 0x45, "count"),
		asm.LoadMem(asm.R1, asm.RFP, ip+9, asm.Byte),
		asm.JNE.Imm(asm.R1, protoUDP, "count"),
		asm.LoadMem(asm.R2, asm.RFP, ip+12, asm.Half),
		asm.JEq.Imm(asm.R2, be16(uint16(four[0])<<8|uint16(four[1])), "four-udp"),
		asm.LoadMem(asm.R2, asm.RFP, ip+16, asm.Half),
		asm.JEq.Imm(asm.R2, be16(uint16(four[0])<<8|uint16(four[1])), "four-udp"),
		asm.Mov.Imm(asm.R8, classData),
		asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("four-udp"),
	)
	p = append(p, load(ipAt+ipv4Len, l4, udpAndBTH)...)
	p = append(p,
		asm.LoadMem(asm.R1, asm.RFP, l4+2, asm.Half).WithSymbol("udp"),
		asm.JEq.Imm(asm.R1, be16(portRoCEv2), "rocev2"),
		asm.JNE.Imm(asm.R1, be16(portGleam), "count"),
		asm.Mov.Imm(asm.R7, classEnvelopes),
		asm.Ja.Label("count"),
		asm.Mov.Reg(asm.R7, asm.R8).WithSymbol("rocev2"),
		asm.LoadMem(asm.R1, asm.RFP, l4+8, asm.Byte),
		asm.JEq.Imm(asm.R1, opACK, "feedback"),
		asm.JNE.Imm(asm.R1, opCNP, "count"),
		asm.Add.Imm(asm.R7, classGroupFeedback).WithSymbol("feedback"),

		asm.Add.Imm(asm.R7, int32(direction*numClasses)).WithSymbol("count"),
		asm.StoreMem(asm.RFP, index, asm.R7, asm.Word),
		asm.LoadMapPtr(asm.R1, counts),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, index),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "wire"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R6, 0, asm.Word), // the length of the frame
		asm.Add.Imm(asm.R0, 8),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
	)
	return p
}
