// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// FuzzExplain explains packets with any fields, of groups of three kinds with data in flight.
func FuzzExplain(f *testing.F) {
	f.Add(uint8(0), uint8(rocev2.SendOnly), uint8(1), uint32(3), uint64(0), uint32(0), uint16(100), uint8(0), true, true)
	f.Add(uint8(1), uint8(rocev2.Acknowledge), uint8(2), uint32(0x201), uint64(0), uint32(0), uint16(0), uint8(0x60), true, false)
	f.Add(uint8(2), uint8(rocev2.WriteOnly), uint8(1), uint32(7), uint64(0x1000), uint32(64), uint16(64), uint8(0), false, true)
	f.Fuzz(func(t *testing.T, kind, op, from uint8, psn uint32, va uint64, length uint32, payload uint16, syndrome uint8, verified, ask bool) {
		spec := GroupSpec{IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 1024, Policy: Policy(kind % 2), DeadAfter: 10 * time.Millisecond}, Window: Window{0x1000, 0x1000, 7}}
		if kind%3 == 1 {
			spec.Repair = RepairSpec{Bytes: 1 << 20, Timeout: time.Millisecond, Tries: 3}
		}
		if kind%3 == 2 {
			spec.PSNProbe = time.Millisecond
		}
		for i := range 3 {
			spec.Legs = append(spec.Legs, LegSpec{Port: Port(i)})
			spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: ipOf(nameOf(MemberID(i))), QPN: 0x11, SQPSN: 0, RQPSN: rocev2.PSN(0x100 * (i + 1)), Window: Window{0x1000, 0x1000, 7}}, Leg: LegID(i)})
		}
		sw := New(Limits{})
		var out Output
		if err := sw.Apply(0, PutGroup{spec}, &out); err != nil {
			t.Fatal(err)
		}
		for n := range rocev2.PSN(6) {
			sw.Input(time.Millisecond, &Packet{Group: groupIP, Src: ipOf("A"), DestQP: groupQPN, Op: rocev2.SendOnly, PSN: n, Payload: 10, Verified: true, Frame: Handle(n), RetainBytes: minFrameBytes}, &out)
		}
		p := Packet{
			Group: groupIP, Src: ipOf(string(rune('A' + from%5))), DestQP: groupQPN, Op: rocev2.Opcode(op), PSN: rocev2.PSN(psn), VA: va, DMALen: length, RKey: 7,
			Payload: payload, Syndrome: rocev2.Syndrome(syndrome), Verified: verified, AckReq: ask, Frame: 99, RetainBytes: minFrameBytes,
		}
		before := string(sw.Group(0).Clone().AppendState(nil, time.Millisecond))
		e := sw.Group(0).Clone().Group(0).Explain(2*time.Millisecond, &p, &Output{})
		if len(e.Steps) == 0 {
			t.Fatalf("nothing is said about %+v", p)
		}
		if len(sw.Group(0).Clone().Group(0).ExplainACK(2*time.Millisecond).Steps) == 0 {
			t.Fatal("nothing is said about the next ACK")
		}
		if string(sw.Group(0).Clone().AppendState(nil, time.Millisecond)) != before {
			t.Fatal("the group has changed")
		}
	})
}
