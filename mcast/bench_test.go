// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// flow drives one group in its steady state: a packet, then its ACKs.
type flow struct {
	sw   *Switch
	out  Output
	data Packet
	acks []Packet
}

// newFlow makes a group of n receivers with windows, with local repair if repair is set,
// and an Output with enough capacity.
func newFlow(t testing.TB, n int, repair bool) *flow {
	f := &flow{sw: New(Limits{})}
	w := Window{Base: 0x1000, Len: 1 << 30, RKey: 7}
	spec := GroupSpec{IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 1024}, Window: w}
	if repair {
		spec.Repair = RepairSpec{Bytes: 256 * minFrameBytes, Timeout: DefaultRepairTimeout, Tries: DefaultRepairTries}
	}
	for i := range n + 1 {
		m := MemberSpec{MemberRecord: MemberRecord{QPN: rocev2.QPN(0x100 + i), RQPSN: rocev2.PSN(i * 1000), Window: w}, Leg: LegID(i)}
		m.IP = ipOf("A")
		for range i {
			m.IP = m.IP.Next()
		}
		spec.Legs = append(spec.Legs, LegSpec{})
		spec.Members = append(spec.Members, m)
		if i > 0 {
			f.acks = append(f.acks, Packet{Group: groupIP, Src: m.IP, DestQP: groupQPN, Op: rocev2.Acknowledge,
				PSN: m.RQPSN, Syndrome: rocev2.SyndromeACK, Verified: true})
		}
	}
	if err := f.sw.Apply(0, PutGroup{spec}, &f.out); err != nil {
		t.Fatal(err)
	}
	f.out.Copies = make([]Copy, 0, n+256)
	f.out.Freed = make([]Handle, 0, 256)
	f.out.Feedback = make([]Feedback, 0, 4)
	f.out.Events = make([]Event, 0, 4)
	f.data = Packet{Group: groupIP, Src: spec.Members[0].IP, DestQP: groupQPN, Op: rocev2.WriteOnly,
		Payload: 1024, AckReq: true, VA: 0x2000, RKey: 7, DMALen: 1024, Verified: true, RetainBytes: minFrameBytes}
	return f
}

func (f *flow) sendOne(t testing.TB) {
	f.sw.Input(0, &f.data, &f.out)
	if f.out.NeedVerify { // the first packet after a pause
		f.data.Verified = true
		f.sw.Input(0, &f.data, &f.out)
	}
	if len(f.out.Copies) != len(f.acks) {
		t.Fatalf("%d copies, drop %v", len(f.out.Copies), f.out.Drop)
	}
	f.data.PSN = f.data.PSN.Next()
	f.data.Frame++
	f.data.Verified = false
}

func (f *flow) ackAll(t testing.TB) {
	for i := range f.acks {
		f.sw.Input(0, &f.acks[i], &f.out)
		f.acks[i].PSN = f.acks[i].PSN.Next()
	}
	if len(f.out.Feedback) != 1 {
		t.Fatalf("%d feedback packets, drop %v", len(f.out.Feedback), f.out.Drop)
	}
}

func TestInputDoesNotAllocate(t *testing.T) {
	for _, n := range []int{3, 64} {
		f := newFlow(t, n, false)
		if got := testing.AllocsPerRun(1000, func() { f.sendOne(t); f.ackAll(t) }); got != 0 {
			t.Errorf("%d legs: data and ACKs allocate %v times", n, got)
		}
		// Rare packets too: NAK, RNR NAK, duplicates, refused requests, CNPs, strangers.
		odd := []Packet{f.acks[0], f.acks[1], f.data, f.data, f.data, f.acks[0], f.acks[0]}
		odd[0].Syndrome = rocev2.SyndromeNAKSequence
		odd[1].Syndrome = rocev2.SyndromeRNR
		odd[2].PSN = odd[2].PSN.Prev()
		odd[3].Op, odd[3].Verified = rocev2.ReadRequest, true
		odd[4].Group = odd[4].Src
		odd[5].Op = rocev2.CNP
		odd[6].Src = groupIP
		if got := testing.AllocsPerRun(100, func() {
			for i := range odd {
				f.sw.Input(0, &odd[i], &f.out)
			}
		}); got != 0 {
			t.Errorf("%d legs: rare packets allocate %v times", n, got)
		}
	}
}

// TestRepairDoesNotAllocate: retaining frames, and repairing a loss in each way, do not
// allocate.
func TestRepairDoesNotAllocate(t *testing.T) {
	for _, n := range []int{3, 64} {
		f := newFlow(t, n, true)
		if got := testing.AllocsPerRun(1000, func() { f.sendOne(t); f.ackAll(t) }); got != 0 {
			t.Errorf("%d legs: data and ACKs allocate %v times", n, got)
		}
		nak, rnr, back := f.acks[0], f.acks[1], f.data
		nak.Syndrome, rnr.Syndrome = rocev2.SyndromeNAKSequence, rocev2.SyndromeRNR|1
		now := time.Second
		repairs, asked := 0, 0
		if got := testing.AllocsPerRun(200, func() {
			nak.PSN, rnr.PSN, back.PSN = f.acks[0].PSN, f.acks[1].PSN, f.data.PSN
			for range 8 {
				f.sendOne(t)
			}
			f.sw.Input(now, &nak, &f.out)
			repairs += len(f.out.Copies)
			f.sw.Input(now, &rnr, &f.out)
			now += time.Millisecond
			f.sw.Advance(now, &f.out)
			back.Verified = true
			f.sw.Input(now, &back, &f.out)
			for range 2 {
				now += 100 * time.Millisecond
				f.sw.Advance(now, &f.out)
				asked += len(f.out.Copies)
			}
			for i := range f.acks {
				f.acks[i].PSN = f.acks[i].PSN.Add(7)
			}
			f.ackAll(t)
		}); got != 0 {
			t.Errorf("%d legs: repair allocates %v times", n, got)
		}
		if repairs < 200*8 || asked < 200*n {
			t.Errorf("%d legs: only %d packets repaired, %d receivers asked", n, repairs, asked)
		}
	}
}

// flows are the groups that the benchmarks measure.
var flows = []struct {
	name   string
	legs   int
	repair bool
}{{"legs=3", 3, false}, {"legs=3/repair", 3, true}, {"legs=64", 64, false}, {"legs=64/repair", 64, true}}

// BenchmarkInputData measures one WRITE_ONLY packet to n legs, with VA and R_Key
// rewritten, without and with local repair. Its ACKs are served while the clock is
// stopped, for 64 packets at a time.
func BenchmarkInputData(b *testing.B) {
	for _, c := range flows {
		b.Run(c.name, func(b *testing.B) {
			n := c.legs
			f := newFlow(b, n, c.repair)
			f.sendOne(b)
			f.ackAll(b)
			b.ReportAllocs()
			b.SetBytes(1024)
			b.ResetTimer()
			for i := range b.N {
				f.sendOne(b)
				if i%64 == 63 || i == b.N-1 {
					b.StopTimer()
					for a := range f.acks {
						f.acks[a].PSN = f.acks[a].PSN.Add(int32(i % 64))
					}
					f.ackAll(b)
					b.StartTimer()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/copy")
		})
	}
}

// BenchmarkInputAck measures one ACK of one of n receivers that acknowledge in step: every
// n-th ACK moves A, for which all n legs are compared.
func BenchmarkInputAck(b *testing.B) {
	for _, c := range flows {
		b.Run(c.name, func(b *testing.B) {
			n := c.legs
			f := newFlow(b, n, c.repair)
			const burst = 64
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; {
				b.StopTimer()
				for range burst {
					f.sendOne(b)
				}
				b.StartTimer()
				for range burst {
					f.ackAll(b)
					i += n
				}
			}
		})
	}
}

// BenchmarkClone measures the copy of a group with 64 packets in flight, which a worker makes for an
// explanation.
func BenchmarkClone(b *testing.B) {
	for _, members := range []int{4, 64, 1024} {
		b.Run(strconv.Itoa(members), func(b *testing.B) {
			spec := GroupSpec{IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 1024, Policy: Evict}, Repair: RepairSpec{Bytes: 1 << 20, Timeout: time.Millisecond, Tries: 3}, PSNProbe: time.Millisecond}
			for i := range members {
				ip := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
				spec.Legs = append(spec.Legs, LegSpec{Port: Port(i)})
				spec.Members = append(spec.Members, MemberSpec{MemberRecord: MemberRecord{IP: ip, QPN: 0x100}, Leg: LegID(i)})
			}
			sw := New(Limits{})
			var out Output
			if err := sw.Apply(0, PutGroup{spec}, &out); err != nil {
				b.Fatal(err)
			}
			for n := range rocev2.PSN(64) {
				sw.Input(time.Millisecond, &Packet{Group: groupIP, Src: spec.Members[0].IP, DestQP: groupQPN, Op: rocev2.SendOnly, PSN: n, Payload: 10, Verified: true, Frame: Handle(n), RetainBytes: minFrameBytes}, &out)
			}
			b.ReportAllocs()
			for b.Loop() {
				sw.Group(0).Clone()
			}
		})
	}
}
