// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// fastProgram is the steering program with the fast path, attached nowhere, and a group.
type fastProgram struct {
	*PortProgram
	maps *fastpath.Maps
}

func newFastProgram(t testing.TB) fastProgram {
	t.Helper()
	labtest.Require(t)
	m, err := fastpath.New(fastpath.Config{Ports: 2, Sizes: []fastpath.Size{{Legs: 1, Groups: 2}}, Slots: 64, LargeSlots: 16})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	s := newTestSteering(t)
	s.UseFastPath(m)
	return fastProgram{s.loadedPort(t, false), m}
}

// fastPSN is the PSN of the next packet.
const fastPSN = rocev2.PSN(0xFFFFFE)

// fastInput is a group, and a packet for it.
type fastInput struct {
	spec    fastpath.GroupSpec
	path    rocev2.Path
	packet  rocev2.Packet
	payload int
	slow    bool // the group is not FAST
	limit   rocev2.PSN
	edit    func(frame []byte) []byte
	policy  Policy
	pass    bool // steering leaves it to the kernel
}

func fastInputOf(v6 bool) fastInput {
	group, source, member := netip.MustParseAddr("10.77.3.4"), netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("10.1.0.2")
	if v6 {
		group, source, member = netip.MustParseAddr("fd00:77::9"), netip.MustParseAddr("fd00:1::1"), netip.MustParseAddr("fd00:1::2")
	}
	return fastInput{
		spec: fastpath.GroupSpec{
			IP: group, QPN: 0x4711, PMTU: 256, Slots: 16,
			Source: fastpath.Source{IP: source, MAC: rocev2.MAC(macA), Ifindex: testIfindex},
			Window: fastpath.Window{Base: 0x10000, Len: 0x1000, RKey: 0xABCD},
			Legs:   []fastpath.LegSpec{{Port: 1, Ifindex: testIfindex, IP: member, QPN: 5}},
		},
		path:    rocev2.Path{Src: source, Dst: group, SrcMAC: rocev2.MAC(macA), DstMAC: rocev2.MAC(macB)},
		packet:  rocev2.Packet{Op: rocev2.SendMiddle, DestQP: 0x4711, PSN: fastPSN},
		payload: 256,
		limit:   fastPSN.Next(),
	}
}

// write makes the packet a WRITE to va.
func (in *fastInput) write(op rocev2.Opcode, va uint64, rkey uint32, payload, dmaLen int) {
	in.packet.Op, in.packet.VA, in.packet.RKey, in.packet.DMALen, in.payload = op, va, rkey, uint32(dmaLen), payload
}

// at changes byte i behind the Ethernet header, or, below 0, before the frame's end.
func at(i int, change func(byte) byte) func([]byte) []byte {
	return func(f []byte) []byte {
		k := i + rocev2.EthernetLen
		if i < 0 {
			k = len(f) + i
		}
		f[k] = change(f[k])
		return f
	}
}

// taken is that the packet is replicated; none, that the fast path does not look at it.
const (
	taken = fastpath.NumReasons + iota
	none
)

// Every packet that is not the next one of a FAST group's source, as the core would forward
// it at once, is left to user space, counted for the reason, and changes nothing.
func TestFast(t *testing.T) {
	p := newFastProgram(t)
	set := func(v byte) func(byte) byte { return func(byte) byte { return v } }
	plus := func(n int) func(byte) byte { return func(b byte) byte { return b + byte(n) } }
	const bth4 = 28 // the offset of BTH in an IPv4 packet, from the IP header on
	for _, c := range []struct {
		name   string
		change func(*fastInput)
		want   fastpath.Reason
	}{
		{"the next packet", func(*fastInput) {}, taken},
		{"tagged", func(in *fastInput) { in.path.Tagged, in.path.TCI = true, 7 }, taken},
		{"with AckReq", func(in *fastInput) { in.packet.AckReq = true }, taken},
		{"not stored", func(in *fastInput) { in.spec.Slots = 0 }, taken},
		{"stored in a large slot", func(in *fastInput) { in.spec.PMTU, in.payload = 2048, 2048 }, taken},
		{"SEND ONLY without bytes", func(in *fastInput) { in.packet.Op, in.payload = rocev2.SendOnly, 0 }, taken},
		{"SEND LAST, one byte", func(in *fastInput) { in.packet.Op, in.payload = rocev2.SendLast, 1 }, taken},
		{"SEND ONLY with immediate data", func(in *fastInput) { in.packet.Op, in.payload = rocev2.SendOnlyImm, 3 }, taken},
		{"the limit is half of all PSNs ahead", func(in *fastInput) { in.limit = fastPSN.Add(1 << 23) }, taken},
		{"two tags", func(in *fastInput) {
			in.path.Tagged = true
			in.edit = func(f []byte) []byte { return append(append(append([]byte{}, f[:14]...), 0, 5, 0x81, 0), f[14:]...) }
		}, none},
		{"UDP, another port", func(in *fastInput) { in.edit, in.pass = at(23, set(0xB9)), true }, none},
		{"source's address", func(in *fastInput) { in.spec.Source.IP = in.spec.Legs[0].IP }, fastpath.NotSource},
		{"source's MAC address", func(in *fastInput) { in.spec.Source.MAC[5]++ }, fastpath.NotSource},
		{"source's port", func(in *fastInput) { in.spec.Source.Ifindex = 2 }, fastpath.NotSource},
		{"ACK", func(in *fastInput) { in.packet.Op, in.payload = rocev2.Acknowledge, 0 }, fastpath.Opcode},
		{"CNP", func(in *fastInput) { in.packet.Op, in.payload = rocev2.CNP, 16 }, fastpath.Opcode},
		{"READ", func(in *fastInput) { in.packet.Op, in.payload = rocev2.ReadRequest, 0 }, fastpath.Opcode},
		{"SEND with invalidate", func(in *fastInput) { in.packet.Op = rocev2.SendOnlyInv }, fastpath.Opcode},
		{"IPv4 options", func(in *fastInput) { in.edit, in.pass = at(0, set(0x46)), true }, fastpath.Headers},
		{"IPv4 checksum", func(in *fastInput) { in.edit = at(11, plus(1)) }, fastpath.Headers},
		{"IPv4 TTL that the checksum is not for", func(in *fastInput) { in.edit = at(8, plus(1)) }, fastpath.Headers},
		{"UDP length", func(in *fastInput) { in.edit = at(25, plus(1)) }, fastpath.Headers},
		{"cut", func(in *fastInput) { in.edit = func(f []byte) []byte { return f[:len(f)-1] } }, fastpath.Headers},
		{"transport version", func(in *fastInput) { in.edit = at(bth4+1, plus(1)) }, fastpath.Headers},
		{"QPN", func(in *fastInput) { in.packet.DestQP++ }, fastpath.Headers},
		{"more pad than bytes", func(in *fastInput) { in.packet.Op, in.payload, in.edit = rocev2.SendOnly, 0, at(bth4+1, set(0x10)) }, fastpath.Headers},
		{"MIDDLE with less than the path MTU", func(in *fastInput) { in.payload = 252 }, fastpath.Length},
		{"FIRST with pad", func(in *fastInput) { in.packet.Op, in.payload = rocev2.SendFirst, 255 }, fastpath.Length},
		{"LAST without bytes", func(in *fastInput) { in.packet.Op, in.payload = rocev2.SendLast, 0 }, fastpath.Length},
		{"ONLY with more than the path MTU", func(in *fastInput) { in.packet.Op, in.payload = rocev2.SendOnly, 257 }, fastpath.Length},
		{"WRITE ONLY", func(in *fastInput) { in.write(rocev2.WriteOnly, 0x10000, 0xABCD, 100, 100) }, taken},
		{"WRITE ONLY to the window's last bytes", func(in *fastInput) { in.write(rocev2.WriteOnlyImm, 0x11000-100, 0xABCD, 100, 100) }, taken},
		{"WRITE FIRST", func(in *fastInput) { in.write(rocev2.WriteFirst, 0x10000, 0xABCD, 256, 257) }, taken},
		{"WRITE ONLY of no bytes", func(in *fastInput) { in.write(rocev2.WriteOnly, 1, 2, 0, 0) }, taken},
		{"WRITE without a window", func(in *fastInput) { in.write(rocev2.WriteOnly, 1, 2, 8, 8); in.spec.Window = fastpath.Window{} }, taken},
		{"WRITE ONLY of another length", func(in *fastInput) { in.write(rocev2.WriteOnly, 0x10000, 0xABCD, 100, 101) }, fastpath.Length},
		{"WRITE FIRST of one packet", func(in *fastInput) { in.write(rocev2.WriteFirst, 0x10000, 0xABCD, 256, 256) }, fastpath.Length},
		{"WRITE before the window", func(in *fastInput) { in.write(rocev2.WriteOnly, 0xFFFF, 0xABCD, 4, 4) }, fastpath.OutOfWindow},
		{"WRITE over the window's end", func(in *fastInput) { in.write(rocev2.WriteOnly, 0x11000-99, 0xABCD, 100, 100) }, fastpath.OutOfWindow},
		{"WRITE behind the window", func(in *fastInput) { in.write(rocev2.WriteOnly, 0x11001, 0xABCD, 4, 4) }, fastpath.OutOfWindow},
		{"WRITE FIRST over the window's end", func(in *fastInput) { in.write(rocev2.WriteFirst, 0x10000, 0xABCD, 256, 0x1001) }, fastpath.OutOfWindow},
		{"WRITE whose end wraps", func(in *fastInput) { in.write(rocev2.WriteFirst, 0x10F00, 0xABCD, 256, 0xFFFFFFFF) }, fastpath.OutOfWindow},
		{"WRITE with another R_Key", func(in *fastInput) { in.write(rocev2.WriteOnly, 0x10000, 0xABCE, 4, 4) }, fastpath.OutOfWindow},
		{"WRITE where no member has a window", func(in *fastInput) { in.write(rocev2.WriteOnly, 0x10000, 0xABCD, 4, 4); in.spec.NoWrite = true }, fastpath.OutOfWindow},
		{"target message", func(in *fastInput) { in.write(rocev2.WriteOnly, 0, 0xEE, 4, 4); in.spec.TargetKey = 0xEE }, fastpath.OutOfWindow},
		{"no IP version 6", func(in *fastInput) {
			in.edit = func(f []byte) []byte { f[14] ^= 0xE0; return f } // 0x86 is no version, and as IPv4 this is none either
		}, fastpath.Headers},
		{"not FAST", func(in *fastInput) { in.slow = true }, fastpath.Slow},
		{"the packet before", func(in *fastInput) { in.packet.PSN = fastPSN.Prev() }, fastpath.Behind},
		{"half of all PSNs before", func(in *fastInput) { in.packet.PSN = fastPSN.Add(-1 << 23) }, fastpath.Behind},
		{"the packet after", func(in *fastInput) { in.packet.PSN = fastPSN.Next() }, fastpath.Ahead},
		{"the packet after, wrapped", func(in *fastInput) { in.packet.PSN = 0 }, fastpath.Ahead},
		{"at the limit", func(in *fastInput) { in.limit = fastPSN }, fastpath.Limit},
		{"beyond the limit", func(in *fastInput) { in.limit = fastPSN.Prev() }, fastpath.Limit},
		{"another MAC address than the port's policy allows", func(in *fastInput) { in.policy.MACs = [][6]byte{{2}} }, none},
		{"a MAC address that the policy allows", func(in *fastInput) { in.policy.MACs = [][6]byte{[6]byte(macA)} }, taken},
	} {
		for _, v6 := range []bool{false, true} {
			in := fastInputOf(v6)
			c.change(&in)
			if in.edit != nil && v6 && c.name != "no IP version 6" {
				continue // the bytes are those of an IPv4 packet
			}
			name := c.name
			if v6 {
				name += ", IPv6"
			}
			p.run(t, name, &in, c.want)
		}
	}
}

// run gives a packet to the program, whose fate is want.
func (p fastProgram) run(t *testing.T, name string, in *fastInput, want fastpath.Reason) {
	t.Helper()
	g, err := p.maps.Put(&in.spec)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer func() {
		if err := g.Delete(); err != nil {
			t.Fatal(err)
		}
	}()
	if err := p.SetPolicy(&in.policy); err != nil {
		t.Fatal(err)
	}
	g.Grant(fastPSN, true, in.limit)
	if in.slow {
		g.Revoke()
	}
	var buf, got [4096]byte
	frame := buf[:rocev2.BuildPacket(buf[:], &in.path, &in.packet, make([]byte, in.payload))]
	if len(frame) == 0 {
		t.Fatalf("%s: no packet was built", name)
	}
	if in.edit != nil {
		frame = in.edit(frame)
	}
	state, was := g.State(), p.reasons(t, g)
	action, counted := uint32(xdpDrop), DropNoSocket
	switch {
	case want == taken:
		action, counted = xdpRedirect, FastRoCEv2
		state.Hi, state.Open = state.Hi.Next(), !in.packet.Op.Is(rocev2.OpEnd)
		if !state.Open {
			state.Ends++
		}
	case in.policy.MACs != nil:
		counted = DropAllowMAC
	case in.pass:
		action, counted = xdpPass, PassGroupOther
	}
	if err := runSteerWith(t, p.PortProgram, name, &ebpf.RunOptions{Data: frame, Repeat: 1}, action, counted); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if s := g.State(); s != state {
		t.Errorf("%s: the group is at %+v, want %+v", name, s, state)
	}
	is := p.reasons(t, g)
	for r := range is {
		n := is[r] - was[r]
		if fastpath.Reason(r) == want && n != 1 || fastpath.Reason(r) != want && n != 0 {
			t.Errorf("%s: %d packets left to user space as %s", name, n, fastpath.Reason(r))
		}
	}
	n, at, ok := g.Load(fastPSN, got[:])
	if stored := want == taken && in.spec.Slots != 0; ok != stored || ok && !bytes.Equal(got[:n], frame) || ok && in.packet.AckReq != (at != 0) {
		t.Errorf("%s: the ring has %x (%v, at %v), the packet was %x", name, got[:n], ok, at, frame)
	}
}

func (p fastProgram) reasons(t *testing.T, g *fastpath.Group) fastpath.Counters {
	t.Helper()
	c, err := g.Counters()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A frame that comes with metadata of somebody else is forwarded with the program's own
// alone.
func TestFastReplacesMetadata(t *testing.T) {
	p := newFastProgram(t)
	in := fastInputOf(false)
	g, err := p.maps.Put(&in.spec)
	if err != nil {
		t.Fatal(err)
	}
	var buf [512]byte
	frame := buf[:rocev2.BuildPacket(buf[:], &in.path, &in.packet, make([]byte, in.payload))]
	for _, foreign := range []int{0, 4, 32} {
		g.Grant(fastPSN, true, in.limit)
		out := make([]byte, 4096)
		run := ebpf.RunOptions{
			Data: append(make([]byte, foreign), frame...), DataOut: out, Repeat: 1,
			Context: testContext{Data: uint32(foreign), DataEnd: uint32(foreign + len(frame))},
		}
		action, err := p.program.Run(&run)
		if err != nil || action != xdpRedirect {
			t.Fatalf("%d bytes of metadata: action %d, %v", foreign, action, err)
		}
		const meta = 16
		if got := run.DataOut; len(got) != meta+len(frame) || !bytes.Equal(got[meta:], frame) || binary.NativeEndian.Uint32(got[4:]) != uint32(fastPSN) {
			t.Fatalf("%d bytes of metadata: %d bytes leave, %x", foreign, len(got), got[:meta])
		}
	}
}

// The program with the fast path gives all frames that are not for it the way that the
// program without has for them.
func TestFastSteersTheRest(t *testing.T) {
	p := newFastProgram(t)
	for _, v6 := range []bool{false, true} {
		in := fastInputOf(v6)
		g, err := p.maps.Put(&in.spec)
		if err != nil {
			t.Fatal(err)
		}
		g.Grant(fastPSN, true, in.limit)
	}
	for _, tc := range steerCases(t) {
		action, want := withoutSocket(tc.want)
		runSteer(t, p.PortProgram, tc, action, want)
	}
}
