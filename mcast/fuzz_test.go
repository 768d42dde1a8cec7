// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// FuzzInput gives a switch with a group any packets, of members and of strangers, at
// increasing times. No call panics, and the state that the group keeps incrementally stays
// right.
func FuzzInput(f *testing.F) {
	f.Add([]byte{byte(rocev2.SendOnly), 0, 0, 0, 0, 0, 0, 0, byte(rocev2.Acknowledge), 1, 0, 0x1F, 0, 0, 0, 0}, uint8(0))
	f.Add([]byte{byte(rocev2.WriteFirst), 0, 0, 0, 8, 0, 4, 0, byte(rocev2.WriteLast), 0, 1, 0, 0, 0, 1, 0, byte(rocev2.Acknowledge), 2, 1, 0x62, 0, 0, 0, 9}, uint8(1))
	f.Add([]byte{byte(rocev2.CNP), 3, 0, 0, 0, 0, 0, 0, byte(rocev2.Acknowledge), 1, 255, 0x20, 0, 0, 0, 200}, uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, policy uint8) {
		s, spec := New(Limits{}), goodSpec()
		spec.Window = Window{1 << 20, 1 << 16, 1}
		for i := range spec.Members {
			spec.Members[i].Window = Window{uint64(i) << 32, 1 << 16, uint32(i + 2)}
		}
		if spec.Policy = Policy(policy % 3); spec.Policy != Strict {
			spec.DeadAfter = 50 * time.Millisecond
		}
		if spec.Policy == Quorum {
			spec.Quorum = 2
			spec.Legs = make([]LegSpec, len(spec.Members)) // a quorum needs connected legs
			for i := range spec.Members {
				spec.Members[i].Leg = LegID(i)
			}
		}
		var out Output
		if err := s.Apply(0, PutGroup{spec}, &out); err != nil {
			t.Fatal(err)
		}
		from := []netip.Addr{ipOf("A"), ipOf("B"), ipOf("C"), ipOf("D"), netip.MustParseAddr("10.9.9.9")}
		now := time.Duration(0)
		for n := Handle(1); len(b) >= 8; b, n = b[8:], n+1 {
			now += time.Duration(b[7]) << 16
			who := int(b[1]) % len(from)
			p := Packet{
				Group: groupIP, Src: from[who], Port: Port(who), Op: rocev2.Opcode(b[0]), AckReq: b[3]&0x80 != 0, BECN: b[1]&0x80 != 0,
				DestQP: groupQPN, PSN: rocev2.PSN(b[2]), Payload: uint16(b[6]) << 2, VA: 1<<20 + uint64(b[4]), RKey: 1,
				DMALen: uint32(b[5])<<8 | uint32(b[6])<<2, Syndrome: rocev2.Syndrome(b[3]), MSN: rocev2.MSN(b[2]), Frame: n, RetainBytes: 2048,
			}
			if b[1]&0x40 != 0 {
				p.Neighbor = 1
				if b[1]&0x20 != 0 {
					p.MSN = rocev2.MSN(who + 1) // the tag of R87
				}
			}
			if s.Input(now, &p, &out); out.NeedVerify {
				p.Verified = true
				if s.Input(now, &p, &out); out.NeedVerify {
					t.Fatal("a verified packet is to be verified")
				}
			}
			checkInvariants(t, s.groups[spec.ID])
			if at, ok := s.NextDeadline(); ok && at <= now {
				s.Advance(now, &out)
				checkInvariants(t, s.groups[spec.ID])
			}
		}
	})
}
