// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Numbers of the queue pairs: the group's virtual one, and the members'.
const (
	virtualQPN = rocev2.QPN(0x4711)
	memberQPN  = rocev2.QPN(0x100) // the QPN of host 0; host i has i more
	rqPSN      = 1000              // host i expects i times this PSN in its peer's first packet, the source sends 0
)

// dataOp is the opcode of the source's packets: each is a message.
const dataOp = rocev2.SendOnly

// benchCase is one kind of traffic.
type benchCase struct {
	payload int // bytes
	legs    int // receivers
}

func (c benchCase) String() string { return fmt.Sprintf("%d B, 1 to %d", c.payload, c.legs) }

// frameLen is the length of the source's frames in bytes, Ethernet header and
// ICRC included.
func (c benchCase) frameLen() int {
	return rocev2.PacketLen(&rocev2.Path{Src: netip.IPv4Unspecified(), Dst: netip.IPv4Unspecified()}, dataOp, c.payload)
}

// mtu is the links' MTU. The margin is for the longest headers of RoCEv2.
func (c benchCase) mtu() int { return max(1500, c.payload+152) }

// jumbo reports whether frames are longer than one buffer of the kernel's, which
// XDP programs take only in fragments (veth: MTU of more than 3506).
func (c benchCase) jumbo() bool { return c.frameLen() > maxLiveFrame }

// maxLiveFrame is the longest frame that BPF_PROG_TEST_RUN makes: a page less
// struct xdp_frame, headroom and skb_shared_info.
const maxLiveFrame = 3400

// dataFrame builds a packet of the source.
func (c benchCase) dataFrame(p *rocev2.Path, psn rocev2.PSN) ([]byte, error) {
	payload := make([]byte, c.payload)
	for i := range payload {
		payload[i] = byte(i * 7)
	}
	k := rocev2.Packet{Op: dataOp, DestQP: virtualQPN, PSN: psn}
	return build(p, &k, payload)
}

func build(p *rocev2.Path, k *rocev2.Packet, payload []byte) ([]byte, error) {
	b := make([]byte, rocev2.PacketLen(p, k.Op, len(payload)))
	if n := rocev2.BuildPacket(b, p, k, payload); n != len(b) {
		return nil, fmt.Errorf("build a packet of %d bytes from %s to %s: impossible", len(payload), p.Src, p.Dst)
	}
	return b, nil
}

// psnTable is struct psn_table of replicate.c: the contributions of a PSN's bytes to
// the ICRC of a packet of op with tail bytes behind its headers.
type psnTable struct{ Of [3][256]uint32 }

func newPSNTable(op rocev2.Opcode, tail int) *psnTable {
	o := rocev2.NewOperator(4 + op.ExtLen() + tail)
	t := new(psnTable)
	for v := range 256 {
		for k := range 3 { // the word's first byte in memory is AckReq
			t.Of[k][v] = o.Apply(uint32(v) << (8 * (k + 1)))
		}
	}
	return t
}

// psnAt is the offset of the PSN's word in a frame.
const psnAt = rocev2.EthernetLen + rocev2.IPv4Len + rocev2.UDPLen + 8

// set writes psn into a frame whose ICRC with PSN 0 is icrc.
func (t *psnTable) set(frame []byte, icrc uint32, psn rocev2.PSN) {
	binary.BigEndian.PutUint32(frame[psnAt:], uint32(psn))
	binary.LittleEndian.PutUint32(frame[len(frame)-rocev2.ICRCLen:],
		icrc^t.Of[0][psn>>16&0xFF]^t.Of[1][psn>>8&0xFF]^t.Of[2][psn&0xFF])
}
