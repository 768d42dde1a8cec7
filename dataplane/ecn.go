// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"encoding/binary"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/rocev2"
)

// marker decides which frames are marked Congestion Experienced, by the depth of the
// queue that they are put into (RED as in the DCQCN paper, Zhu et al. 2015): none up to
// kmin bytes, all above kmax, and in between with a probability that grows linearly with
// the depth up to pmax. The zero value marks nothing.
type marker struct {
	kmin, kmax int     // bytes
	pmax       float64 // probability at kmax bytes
	pmaxScaled uint64  // pmax in units of 2^-32
	rand       uint64  // state of the generator
}

// newMarker makes a marker. Markers with the same seed make the same decisions.
func newMarker(c config.ECN, seed uint64) marker {
	return marker{kmin: c.KMin, kmax: c.KMax, pmax: c.PMax, pmaxScaled: uint64(c.PMax * (1 << 32)), rand: seed}
}

// mark reports whether to mark a frame before which depth bytes wait.
func (m *marker) mark(depth int) bool {
	switch {
	case m.kmax == 0 || depth <= m.kmin:
		return false
	case depth > m.kmax:
		return true
	}
	return m.draw() < m.pmaxScaled*uint64(depth-m.kmin)/uint64(m.kmax-m.kmin)
}

// draw returns the next 32-bit random number (splitmix64, upper half).
func (m *marker) draw() uint64 {
	m.rand += 0x9E3779B97F4A7C15
	z := m.rand
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return (z ^ z>>31) >> 32
}

// mark marks the IP packet l3, a copy that is about to be staged, if the port is congested
// and the packet's transport is ECN-capable: ECT(0) or ECT(1). It never clears CE. The
// ICRC does not cover the field (A17.3.3).
func (e *egress) mark(l3 []byte) {
	if e.depth() > e.ecn.kmin {
		e.markCongested(l3)
	}
}

func (e *egress) markCongested(l3 []byte) {
	if ect(l3) && e.ecn.mark(e.depth()) {
		setCE(l3)
		e.ceMarked++
	}
}

// ect reports whether an IP packet is ECN-capable and not marked yet.
func ect(l3 []byte) bool {
	e := rocev2.IPv4(l3).ECN()
	if l3[0]>>4 == 6 {
		e = rocev2.IPv6(l3).ECN()
	}
	return e == rocev2.ECT0 || e == rocev2.ECT1
}

// setCE sets Congestion Experienced, and updates the IPv4 header's checksum.
func setCE(l3 []byte) {
	if l3[0]>>4 == 6 {
		h := rocev2.IPv6(l3)
		h.SetTrafficClass(h.TrafficClass() | uint8(rocev2.CE))
		return
	}
	h := rocev2.IPv4(l3)
	old := binary.BigEndian.Uint16(l3)
	h.SetTOS(h.TOS() | uint8(rocev2.CE))
	h.SetChecksum(rocev2.ChecksumUpdate16(h.Checksum(), old, binary.BigEndian.Uint16(l3)))
}
