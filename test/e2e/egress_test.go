// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// onTheLink is the bytes that a captured frame takes on an Ethernet link: FCS, preamble
// and gap are 24 bytes.
func (c *captured) onTheLink() int { return max(60, len(c.raw)) + 24 }

// measure returns the bits a second of the data that comes to tap, from the first
// frame on until the one with PSN last, and how long that took.
func measure(t *testing.T, p *tap, last rocev2.PSN) (rate float64, over time.Duration) {
	t.Helper()
	var first time.Duration
	bytes := 0
	p.expect("the last packet", func(c *captured) bool {
		switch {
		case !isData(c):
			return false
		case first == 0:
			first = c.at // its bytes had left before the clock started
		default:
			bytes += c.onTheLink()
		}
		over = c.at - first
		return c.BTH().PSN() == last
	})
	return float64(bytes) * 8 / over.Seconds(), over
}

// A port with a rate, from the configuration or set at run time, delivers as fast as a
// link of that rate, and no faster; after its rate was removed it is as fast as any.
func TestPortRate(t *testing.T) {
	const packets, message = 2048, 48 << 10
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}, memory: packets << 10, ports: map[string]string{"p2": "rate: 20mbit"}})
	r.join()
	p := newTap(t, r.star.Hosts[1])
	psn := r.hosts[1].qp.Info().RQPSN
	transfer := func() (float64, time.Duration) {
		t.Helper()
		r.fill(0)
		n := r.post(0, message)
		psn = psn.Add(int32(packets))
		got, over := measure(t, p, psn.Add(-1))
		r.complete(r.hosts[0], n)
		r.same(0)
		return got, over
	}
	check := func(want float64) {
		t.Helper()
		best, machine := 0.0, labtest.Watch()
		for range 3 { // a busy machine may leave the queue empty
			got, over := transfer()
			t.Logf("%.2f Mbit/s for %v", got/1e6, over.Round(time.Millisecond))
			if best = max(best, got); best >= 0.95*want {
				break
			}
		}
		if best > 1.05*want {
			t.Errorf("%.2f Mbit/s, want at most %v and 5 %%", best/1e6, want/1e6)
		} else if best < 0.95*want {
			machine.Timing(t, "%.2f Mbit/s, want %v within 5 %%", best/1e6, want/1e6)
		}
	}
	check(20e6)
	set := func(v linkrate.Rate) {
		t.Helper()
		if err := r.engine.SetPort("p2", &api.SetPort{Rate: &v}); err != nil {
			t.Fatal(err)
		}
		if got := r.ports()[1].Rate; got != v {
			t.Errorf("the port's rate is %v, was set to %v", got, v)
		}
	}
	set(40_000_000)
	check(40e6)
	set(linkrate.None)
	if got, _ := transfer(); got < 60e6 {
		t.Errorf("without a rate: %.2f Mbit/s", got/1e6)
	}
	e := r.ports()[1].Egress
	if e.Bytes != 0 || e.Frames != 0 || e.MaxDepthBytes == 0 || e.MaxDepthBytes > e.MaxBytes {
		t.Errorf("the queue in the end: %+v", e)
	}
	if other := r.ports()[2]; other.Egress.Dropped != 0 || other.Rate != linkrate.None {
		t.Errorf("the other port: %+v", other)
	}
	v := linkrate.Rate(20_000_000)
	if err := r.engine.SetPort("p9", &api.SetPort{Rate: &v}); err == nil || err.Error() != "there is no port p9: see `gleam port list`" {
		t.Errorf("a port that is not there: %v", err)
	}
}

// classes are the DSCPs of the frames of TestSlowPort, by their ECN.
var classes = map[uint8]rocev2.ECN{0x20: rocev2.NotECT, 0x40: rocev2.ECT0, 0x60: rocev2.ECT1}

// One receiver's port is slow, its queue overflows. The other receiver gets all packets
// of the source, unchanged; the slow one's copies alone are dropped or, if their
// transport can tell the source, marked.
func TestSlowPort(t *testing.T) {
	const frames = 600
	r := newRig(t, rigConfig{
		star: lab.StarConfig{Hosts: 3}, memory: 1 << 20, alone: true,
		ports: map[string]string{"p2": "rate: 3mbit\n    queue: 65536\n    ecn: {kmin: 8192, kmax: 32768, pmax: 0.1}"},
	})
	r.join()
	// Data waits for receivers that have not shown their numbering, and its source is asked
	// for it again (R53): what is forged below is sent once.
	if _, err := r.hosts[0].qp.PostSend(endpoint.SendWR{
		Op: endpoint.Write, Local: endpoint.Segment{MR: r.hosts[0].mr, Len: 1024}, RemoteAddr: groupBase, RKey: groupRKey,
	}); err != nil {
		t.Fatal(err)
	}
	r.complete(r.hosts[0], 1)
	source, slow, fast := newTap(t, r.star.Hosts[0]), newTap(t, r.star.Hosts[1]), newTap(t, r.star.Hosts[2])
	f, machine := newForger(r), labtest.Watch()
	first, expected := r.hosts[0].qp.Info().SQPSN.Next(), r.hosts[2].qp.Info().RQPSN.Next()
	dscps := []uint8{0x20, 0x40, 0x60}
	for i := range frames {
		dscp := dscps[i%3]
		source.send(f.packet(0, rocev2.Packet{
			Op: rocev2.WriteOnly, PSN: first.Add(int32(i)), VA: groupBase, RKey: groupRKey, DMALen: 1024,
		}, 1024, func(p *rocev2.Path) { p.TOS = dscp | uint8(classes[dscp]) }))
		c := fast.expect("the fast receiver's copy", isData)
		if psn := c.BTH().PSN(); psn != expected.Add(int32(i)) {
			t.Fatalf("PSN %v came to the fast receiver, want %v", psn, expected.Add(int32(i)))
		}
		if tos := c.IPv4().TOS(); tos != dscp|uint8(classes[dscp]) {
			t.Fatalf("PSN %d came with TOS %#x, was sent with %#x", i, tos, dscp|uint8(classes[dscp]))
		}
	}
	e := r.ports()[1].Egress
	if e.Dropped == 0 || e.MaxDepthBytes > e.MaxBytes || e.MaxDepthBytes < e.MaxBytes*9/10 {
		t.Errorf("the slow port's queue: %+v", e)
	}
	got, marked := map[uint8]int{}, map[uint8]uint64{}
	until(t, "the slow port's queue is empty, and what it marked has come", func() bool {
		for c := slow.next(); c != nil; c = slow.next() {
			if !isData(c) {
				continue
			}
			dscp := c.IPv4().TOS() &^ 3
			got[dscp]++
			switch ecn := c.IPv4().ECN(); ecn {
			case rocev2.CE:
				marked[dscp]++
			case classes[dscp]:
			default:
				t.Errorf("ECN %d with DSCP %#x", ecn, dscp)
			}
			if !c.VerifyICRC() {
				t.Error("wrong ICRC")
			}
		}
		e := r.ports()[1].Egress
		return e.Frames == 0 && marked[0x20]+marked[0x40]+marked[0x60] >= e.CEMarked
	})
	for dscp, ecn := range classes {
		if got[dscp] == 0 || got[dscp] >= frames/3 && r.ports()[1].Egress.Dropped == 0 {
			t.Errorf("%d frames of ECN %d came to the slow receiver", got[dscp], ecn)
		}
		if ecn == rocev2.NotECT && marked[dscp] != 0 {
			t.Errorf("%d frames that are not ECN-capable came marked", marked[dscp])
		}
	}
	ports := r.ports()
	if n := marked[0x40] + marked[0x60]; ports[1].Egress.CEMarked != n || ports[0].Egress.CEMarked+ports[2].Egress.CEMarked != 0 || r.stats().CEMarked != n {
		t.Errorf("%d frames came marked; ports count %d, %d, %d", n, ports[0].Egress.CEMarked, ports[1].Egress.CEMarked, ports[2].Egress.CEMarked)
	}
	if r.stats().Drops["queue_full"] == 0 || ports[2].Egress.Dropped != 0 {
		t.Errorf("drops %v, %d at the fast port", r.stats().Drops, ports[2].Egress.Dropped)
	}
	for dscp, ecn := range classes {
		if ecn != rocev2.NotECT && marked[dscp] < uint64(got[dscp])/2 { // all but the first 8 to 32 kB
			machine.Timing(t, "%d of %d frames of ECN %d came marked", marked[dscp], got[dscp], ecn) // a busy machine may leave the queue empty
		}
	}
}

// isProbe reports whether a captured packet is a keepalive probe of the switch: no
// test's source writes messages of no bytes. A probe may be delayed.
func isProbe(c *captured) bool { return c.Op == rocev2.WriteOnly && c.RETH().DMALen() == 0 }

// isData reports whether a captured frame is a copy of a packet of the source.
func isData(c *captured) bool {
	return c.Kind == rocev2.KindRoCE && c.Op.Is(rocev2.OpRequest) && !isProbe(c)
}
