// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// TestTaps: the frames at a port are whole ones, as many as the port has sent, in the order of time, and
// those of a link are the same at both ends but for what is lost; the samples add up to the bytes sent. None
// of it depends on the number of partitions, or on how often it is asked for.
func TestTaps(t *testing.T) {
	for name, pfc := range map[string]PFC{"without PFC": {}, "with PFC": {60_000, 40_000}} {
		t.Run(name, func(t *testing.T) {
			shape, err := topology.FatTree(4, 1)
			if err != nil {
				t.Fatal(err)
			}
			shape.HostLoss = 1e-3
			if pfc.XOff > 0 {
				shape.HostLoss = 0
			}
			fabric := build(t, shape)
			leaf := fabric.Leaf(3)
			toHost := fabric.Ports(3)[0].PeerPort
			taps := []Tap{{Node: leaf, Port: toHost, Packets: true, Every: topology.Microsecond}, {Node: 3, Packets: true}, {Node: leaf, Port: fabric.Ports(2)[0].PeerPort, Packets: true, Every: 700 * topology.Nanosecond}}
			var first string
			for _, n := range []int{1, 4} {
				program := broadcast(500*4096, 0, 3, 7, 12)
				program.flows = append(program.flows, workload.Flow{Source: 2, To: 3, Group: workload.None, Bytes: 300 * 4096})
				c := Config{
					Topology: fabric, Program: program, Partitions: n, PFC: pfc, Taps: taps, ECN: ECN{20000, 100000, 0.2},
					Host: Host{Personality: rc.Strict, Timeout: time.Millisecond, Congestion: &fast}, Repair: mcast.RepairSpec{Bytes: 16 << 20, Timeout: 100 * time.Microsecond, Tries: 4},
				}
				s, err := New(c)
				if err != nil {
					t.Fatal(err)
				}
				before := s.PortStats(leaf)[toHost]
				o := observer{s: s, fabric: fabric, taps: taps, t: t}
				for at, step := Time(0), topology.Time(n*n)*30*topology.Microsecond; ; at += step {
					s.run(at)
					next, more := s.Next()
					if !more {
						next = at
					}
					s.Observed(next, o.see)
					if !more {
						break
					}
				}
				stats := s.PortStats(leaf)[toHost]
				if got := stats.Packets - before.Packets; o.sent[0] != got || o.bytes[0] != stats.Bytes-before.Bytes || o.received[1]+stats.Lost != got || got < 800 {
					t.Errorf("%d partitions: %d frames and %d bytes in samples; the port has sent %d and %d; %d came to the host, %d were lost", n, o.sent[0], o.bytes[0], got, stats.Bytes-before.Bytes, o.received[1], stats.Lost)
				}
				if host := s.PortStats(3)[0]; o.sent[1] != host.Packets || o.received[0]+host.Lost != host.Packets {
					t.Errorf("%d partitions: %d frames sent by the host, %d came: the port has sent %d", n, o.sent[1], o.received[0], host.Packets)
				}
				if o.kinds[rocev2.Acknowledge] == 0 || o.kinds[rocev2.SendMiddle] == 0 || o.queued == 0 || (pfc.XOff > 0) != (o.pauses > 0) {
					t.Errorf("%d partitions: %v, %d samples with a queue, %d pauses", n, o.kinds, o.queued, o.pauses)
				}
				if sum := fmt.Sprintf("%x", o.sum()); n == 1 {
					first = sum
				} else if sum != first {
					t.Errorf("%d partitions: other frames or samples than with one", n)
				}
			}
		})
	}
	fabric := build(t, topology.LeafSpine(2, 1, 2))
	for _, taps := range [][]Tap{{{Node: 0, Port: 1}}, {{Node: -1}}, {{Node: 1}, {Node: 1}}} {
		if _, err := New(Config{Topology: fabric, Program: broadcast(1, 0, 1), Taps: taps}); err == nil {
			t.Errorf("taps %+v: no error", taps)
		}
	}
}

// observer checks what is observed.
type observer struct {
	t              *testing.T
	s              *Simulation
	fabric         *topology.Topology
	taps           []Tap
	last           Time
	sent, received [3]uint64
	bytes          [3]uint64
	kinds          map[rocev2.Opcode]int
	queued, pauses int
	log            []byte
}

func (o *observer) sum() []byte {
	h := fnv.New128a()
	h.Write(o.log)
	return h.Sum(nil)
}

func (o *observer) see(x *Observed) {
	if x.At < o.last {
		o.t.Fatalf("%d ps comes after %d", x.At, o.last)
	}
	o.last = x.At
	o.log = fmt.Appendf(o.log, "%d %d %v %x", x.At, x.Tap, x.Received, x.Frame)
	if x.Sample != nil {
		o.log = fmt.Appendf(o.log, "%+v", *x.Sample)
		o.bytes[x.Tap] += x.Sample.Bytes
		if x.Sample.Queue > 5000 {
			o.queued++
		}
		if most := uint64(o.taps[x.Tap].Every/psOf) + 1; x.Sample.Bytes > most {
			o.t.Errorf("%d bytes in an interval in which the link takes %d", x.Sample.Bytes, most)
		}
		return
	}
	if x.Received {
		o.received[x.Tap]++
	} else {
		o.sent[x.Tap]++
	}
	if len(x.Frame) == 60 && x.Frame[12] == 0x88 && x.Frame[13] == 0x08 {
		o.pauses++
		return
	}
	var f rocev2.Frame
	if r := rocev2.Decode(x.Frame, &f); r != rocev2.OK || f.Kind != rocev2.KindRoCE || !f.VerifyICRC() {
		o.t.Fatalf("frame %x: %v", x.Frame, r)
	}
	if o.kinds == nil {
		o.kinds = map[rocev2.Opcode]int{}
	}
	o.kinds[f.Op]++
}
