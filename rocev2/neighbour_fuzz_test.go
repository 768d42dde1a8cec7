// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"encoding/binary"
	"slices"
	"testing"
)

// FuzzNeighbour has the questions of neighbours, whose checksum a fuzzer cannot
// guess, decoded and answered: every answer is a frame that decodes.
func FuzzNeighbour(f *testing.F) {
	p4, p6 := v4Path(), v6Path()
	b := make([]byte, 256)
	f.Add(slices.Clone(b[:BuildARP(b, &p4, &ARP{Op: ARPRequest, SenderIP: p4.Src, TargetIP: p4.Dst})]))
	f.Add(slices.Clone(b[:BuildNeighborSolicitation(b, &p6, p6.Src)]))
	f.Fuzz(func(t *testing.T, b []byte) {
		var fr Frame
		if Decode(b, &fr) != OK {
			return
		}
		answer := make([]byte, 256)
		n := 0
		var a ARP
		var s NeighborSolicitation
		switch {
		case fr.Kind == KindARP && DecodeARP(&fr, &a) == OK:
			n = BuildARPReply(answer, &fr, &a, switchMAC)
		case IsNeighborSolicitation(&fr):
			q := fr.buf[fr.l4:]
			if len(q) < 4 {
				return
			}
			q[2], q[3] = 0, 0
			binary.BigEndian.PutUint16(q[2:], transportChecksum(fr.Src(), fr.Dst(), ProtoICMPv6, q))
			if r := DecodeNeighborSolicitation(&fr, &s); r != OK {
				if s != (NeighborSolicitation{}) && r == ReasonICMPv6Checksum {
					t.Fatalf("refused with %v after its checksum was made right", r)
				}
				return
			}
			if s.Target.IsMulticast() || s.Target.IsUnspecified() {
				t.Fatalf("accepted for %v", s.Target)
			}
			n = BuildNeighborAdvertisement(answer, &fr, &s, switchMAC)
		}
		if n == 0 {
			return
		}
		if r := Decode(answer[:n], &fr); r != OK || fr.Len() != n {
			t.Fatalf("the answer is refused with %v: %x", r, answer[:n])
		}
	})
}
