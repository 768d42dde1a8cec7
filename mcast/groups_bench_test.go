// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// manyFlows drives many groups of 4 members in their steady state, with local repair: a
// packet of each group in turn, with the ACKs of its three receivers.
type manyFlows struct {
	sw     *Switch
	out    Output
	now    time.Duration
	groups int
	group  int          // the group of the next packet
	step   int          // 0: the data packet is next; 1 to 3: an ACK
	psn    []rocev2.PSN // the PSN of the next data packet, by group
	served int          // packets of the batch
}

// flowBatch is the number of packets that a worker receives at once. It serves the
// deadlines after each batch.
const flowBatch = 64

// flowGap is the time between two packets for a group address: 10 million a second.
const flowGap = 100 * time.Nanosecond

func groupAddr(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)})
}

func memberAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i + 1)}) }

// groupOf is the specification of group id with the given number of members.
func groupOf(id, members int, repair int64) GroupSpec {
	w := Window{Base: 0x1000, Len: 1 << 30, RKey: 7}
	spec := GroupSpec{ID: GroupID(id), IP: groupAddr(id), GroupParams: GroupParams{QPN: groupQPN, PathMTU: 1024, Policy: Evict, DeadAfter: 100 * time.Millisecond}, Window: w}
	if repair > 0 {
		spec.Repair = RepairSpec{Bytes: repair, Timeout: DefaultRepairTimeout, Tries: DefaultRepairTries}
	}
	for m := range members {
		spec.Legs = append(spec.Legs, LegSpec{})
		spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: memberAddr(m), QPN: 0x100, RQPSN: rocev2.PSN(1000 * m), Window: w}, Leg: LegID(m)})
	}
	return spec
}

func newManyFlows(t testing.TB, n int) *manyFlows {
	f := &manyFlows{sw: New(Limits{Groups: n}), groups: n, psn: make([]rocev2.PSN, n)}
	for i := range n {
		if err := f.sw.Apply(0, PutGroup{groupOf(i, 4, 1<<20)}, &f.out); err != nil {
			t.Fatal(err)
		}
	}
	f.out.Copies = make([]Copy, 0, 256)
	f.out.Freed = make([]Handle, 0, 256)
	f.out.Feedback = make([]Feedback, 0, 256)
	f.out.Events = make([]Event, 0, 256)
	return f
}

// packet serves the next packet and, at the end of a batch, the deadlines that have come
// by then.
func (f *manyFlows) packet(t testing.TB) {
	f.now += flowGap
	psn := f.psn[f.group]
	if f.step == 0 {
		f.sw.Input(f.now, &Packet{
			Group: groupAddr(f.group), Src: memberAddr(0), DestQP: groupQPN, Op: rocev2.WriteOnly, PSN: psn, Frame: Handle(f.group),
			Payload: 1024, AckReq: true, VA: 0x2000, RKey: 7, DMALen: 1024, Verified: true, RetainBytes: minFrameBytes,
		}, &f.out)
		if len(f.out.Copies) != 3 {
			t.Fatalf("%d copies, drop %v", len(f.out.Copies), f.out.Drop)
		}
	} else {
		f.sw.Input(f.now, &Packet{
			Group: groupAddr(f.group), Src: memberAddr(f.step), DestQP: groupQPN, Op: rocev2.Acknowledge, Syndrome: rocev2.SyndromeACK,
			PSN: psn.Add(int32(1000 * f.step)), MSN: rocev2.MSN(psn + 1), Verified: true,
		}, &f.out)
		if f.step == 3 && len(f.out.Feedback) != 1 {
			t.Fatalf("%d feedback packets, drop %v", len(f.out.Feedback), f.out.Drop)
		}
	}
	if f.step++; f.step == 4 {
		f.psn[f.group] = psn.Next()
		f.group, f.step = (f.group+1)%f.groups, 0
	}
	if f.served++; f.served < flowBatch {
		return
	}
	f.served = 0
	if at, ok := f.sw.NextDeadline(); ok && at <= f.now {
		f.sw.Advance(f.now, &f.out)
	}
}

// BenchmarkGroups measures one packet, data or ACK, of one of many active groups. The time
// per packet hardly grows with the number of groups.
func BenchmarkGroups(b *testing.B) {
	for _, n := range []int{1, 100, 1000, 10_000} {
		b.Run(fmt.Sprintf("groups=%d", n), func(b *testing.B) {
			f := newManyFlows(b, n)
			for range 8 * n {
				f.packet(b)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				f.packet(b)
			}
		})
	}
}
