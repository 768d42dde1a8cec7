// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"testing"

	"github.com/gleam-rdma/gleam/rocev2"
)

// flow drives one group in its steady state: a packet, then its ACKs.
type flow struct {
	sw   *Switch
	out  Output
	data Packet
	acks []Packet
}

// newFlow makes n receivers, with windows, and room in the Output.
func newFlow(t testing.TB, n int) *flow {
	f := &flow{sw: New(Limits{})}
	w := Window{Base: 0x1000, Len: 1 << 30, RKey: 7}
	spec := GroupSpec{IP: groupIP, QPN: groupQPN, PMTU: 1024, Window: w}
	for i := range n + 1 {
		m := MemberSpec{QPN: rocev2.QPN(0x100 + i), Leg: LegID(i), RQPSN: rocev2.PSN(i * 1000), Window: w}
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
	f.out.Copies = make([]Copy, 0, n)
	f.out.Feedback = make([]Feedback, 0, 4)
	f.out.Events = make([]Event, 0, 4)
	f.data = Packet{Group: groupIP, Src: spec.Members[0].IP, DestQP: groupQPN, Op: rocev2.WriteOnly,
		Payload: 1024, AckReq: true, VA: 0x2000, RKey: 7, DMALen: 1024, Verified: true}
	return f
}

func (f *flow) sendOne(t testing.TB) {
	f.sw.Input(0, &f.data, &f.out)
	if len(f.out.Copies) != len(f.acks) {
		t.Fatalf("%d copies, drop %v", len(f.out.Copies), f.out.Drop)
	}
	f.data.PSN = f.data.PSN.Next()
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
		f := newFlow(t, n)
		if got := testing.AllocsPerRun(1000, func() { f.sendOne(t); f.ackAll(t) }); got != 0 {
			t.Errorf("%d legs: data and ACKs allocate %v times", n, got)
		}
		// The rare paths too: NAK, RNR NAK, duplicates, refusals, CNPs, strangers.
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

// BenchmarkInputData is one WRITE_ONLY packet to n legs, VA and R_Key
// translated. Its ACKs are taken in beside the clock, 64 packets at a time.
func BenchmarkInputData(b *testing.B) {
	for _, n := range []int{3, 64} {
		b.Run(fmt.Sprintf("legs=%d", n), func(b *testing.B) {
			f := newFlow(b, n)
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

// BenchmarkInputAck is one ACK of one of n receivers that acknowledge in step:
// every n-th one moves A, which is a look at all n branches.
func BenchmarkInputAck(b *testing.B) {
	for _, n := range []int{3, 64} {
		b.Run(fmt.Sprintf("legs=%d", n), func(b *testing.B) {
			f := newFlow(b, n)
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
