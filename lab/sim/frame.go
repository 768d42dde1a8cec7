// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"net/netip"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/rocev2"
)

// frameRoom is enough for each frame.
const frameRoom = 8192

// macBytes is the length of the authentication code at the end of a token message. A simulation has no
// keys: it is 0.
const macBytes = 32

// frame writes the frame of a packet that was captured at a tap.
func (s *Simulation) frame(b []byte, t *Tap, c *captured) []byte {
	here := s.firstPort[t.Node] + uint32(t.Port)
	from, to := here, s.ports[here].peer
	if c.received {
		from, to = to, from
	}
	p := rocev2.Path{SrcMAC: macOf(from), DstMAC: macOf(to)}
	e := &c.e
	k := rocev2.Packet{Op: e.opcode(), PSN: e.seq(), AckReq: e.flags&ackReq != 0, BECN: e.flags&becn != 0, DestQP: hostQPN}
	src := hostAddr(topology.Node(e.src))
	connection := mix(uint64(e.src)<<32 | uint64(e.channel))
	switch e.kind {
	case pause:
		return pauseFrame(b, &p, e.aux != 0)
	case report:
		p.Src, p.Dst, p.SrcPort = switchAddr(s.ports[from].node), groupAddr(s.groupAt(to, e.dst)), envelope.DefaultPort
		return b[:rocev2.BuildUDP(b, &p, envelope.DefaultPort, append(c.report.Message.AppendBinary(nil), make([]byte, macBytes)...))]
	case unicast:
		p.Src, p.Dst = src, hostAddr(topology.Node(e.dst))
	case toSwitch:
		p.Src, p.Dst, k.DestQP = src, groupAddr(s.groupAt(to, e.dst)), groupQPN
	case toMember:
		m := s.partitionOf(s.ports[to].node).conns[e.dst]
		p.Src, p.Dst = groupAddr(m.flow.Group), hostAddr(m.host)
	}
	p.SrcPort = 0xC000 | uint16(connection)&0x3FFF
	if s.cfg.Host.Congestion != nil && !e.isFeedback() {
		p.TOS = uint8(rocev2.ECT0)
	}
	if e.flags&ce != 0 {
		p.TOS = uint8(rocev2.CE)
	}
	var payload []byte
	switch {
	case k.Op == rocev2.CNP:
		payload, k.BECN = rocev2.CNPPayload, true
	case e.isFeedback():
		k.Syndrome, k.MSN = e.syndrome(), e.msn()
	default:
		payload = zeros[:e.aux]
		k.DMALen, k.RKey = e.dmaLen(), s.partitions[0].key // used if there is a RETH
	}
	n := rocev2.BuildPacket(b, &p, &k, payload)
	if e.flags&corrupt != 0 {
		b[n-1] ^= 1 // of the ICRC
	}
	return b[:n]
}

// zeros are what all payloads are.
var zeros [4096]byte

// pauseFrame writes a frame of priority flow control (IEEE 802.1Q, 36) for class 0.
func pauseFrame(b []byte, p *rocev2.Path, on bool) []byte {
	b = b[:60]
	clear(b)
	h := rocev2.Ethernet(b)
	h.SetDst(rocev2.MAC{0x01, 0x80, 0xC2, 0, 0, 0x01})
	h.SetSrc(p.SrcMAC)
	h.SetEtherType(0x8808)
	binary.BigEndian.PutUint16(b[14:], 0x0101)
	binary.BigEndian.PutUint16(b[16:], 1)
	if on {
		binary.BigEndian.PutUint16(b[18:], 0xFFFF)
	}
	return b
}

// macOf returns the address of a port.
func macOf(n uint32) rocev2.MAC {
	return rocev2.MAC{2, 0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

// switchAddr returns the address of a switch.
func switchAddr(n int32) netip.Addr {
	return netip.AddrFrom4([4]byte{11, byte(n >> 16), byte(n >> 8), byte(n)})
}

// groupAt returns the group with a number at the switch of a port.
func (s *Simulation) groupAt(n, id uint32) int32 { return s.groupsAt[s.ports[n].node][id] }
