// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

const (
	pumpMessage = 32 << 10 // bytes, 32 packets
	pumpDepth   = 64       // messages in flight: more than any queue here holds
	// pumpOnTheLink is the bytes that a message takes on the link: headers, and
	// Ethernet's addition to each frame. One packet of it has RETH.
	pumpOnTheLink = pumpMessage + 32*(14+20+8+12+4+24) + 16
)

// pump has host 0 WRITE to the group without pause until stop.
type pump struct {
	r       *rig
	stopped atomic.Bool
	done    atomic.Uint64 // messages
	wg      sync.WaitGroup
}

func (r *rig) pump() *pump {
	p := &pump{r: r}
	p.wg.Go(func() {
		h := r.hosts[0]
		var wc [pumpDepth]endpoint.Completion
		for next := uint64(0); !p.stopped.Load() || p.done.Load() < next; {
			for ; next < p.done.Load()+pumpDepth && !p.stopped.Load(); next++ {
				off := int(next) % pumpDepth * pumpMessage
				if _, err := h.qp.PostSend(endpoint.SendWR{
					ID: next, Op: endpoint.Write, Local: endpoint.Segment{MR: h.mr, Offset: off, Len: pumpMessage}, RemoteAddr: groupBase + uint64(off), RKey: groupRKey,
				}); err != nil {
					r.t.Errorf("post message %d: %v", next, err)
					return
				}
			}
			n, err := h.qp.Poll(r.ctx, wc[:])
			for _, c := range wc[:n] {
				if c.Err() != nil {
					r.t.Errorf("message %d: %v", c.ID, c.Err())
					return
				}
			}
			p.done.Add(uint64(n))
			if err != nil {
				r.t.Errorf("after %d messages: %v", p.done.Load(), err)
				return
			}
		}
	})
	r.t.Cleanup(p.stop)
	return p
}

func (p *pump) stop() { p.stopped.Store(true); p.wg.Wait() }

// goodput returns the bits a second on the link that are moved during d, and the
// mean depth of a port's queue meanwhile, in bytes.
func (p *pump) goodput(d time.Duration, port int) (rate float64, depth int) {
	from, at, n := p.done.Load(), time.Now(), 0
	for ; time.Since(at) < d; n++ { // a measurement, not a wait for something to happen
		time.Sleep(10 * time.Millisecond)
		depth += p.r.ports()[port].Egress.Bytes
	}
	return float64(p.done.Load()-from) * pumpOnTheLink * 8 / time.Since(at).Seconds(), depth / n
}

// maxMean bounds the mean depth of a queue of 128 KiB that is marked from 8 KiB on,
// and above 32 KiB always.
const maxMean = 65536

// congestedRig has ports with queues that the source's window would overflow.
func congestedRig(t *testing.T, congestion *dcqcn.Config) *rig {
	const queue = "rate: none\n    queue: 131072\n    ecn: {kmin: 8192, kmax: 32768, pmax: 0.1}"
	r := newRig(t, rigConfig{
		star: lab.StarConfig{Hosts: 4}, memory: pumpDepth * pumpMessage,
		ports:  map[string]string{"p2": queue, "p3": queue, "p4": queue},
		device: func(_ int, c *soft.Config) { c.Congestion, c.MaxUnacked = congestion, 1024 },
	})
	r.fill(0)
	r.join()
	return r
}

func (r *rig) setRate(port string, v linkrate.Rate) {
	r.t.Helper()
	if err := r.engine.SetPort(port, &api.SetPort{Rate: &v}); err != nil {
		r.t.Fatal(err)
	}
}

// A group settles at the rate of its slowest leg, with a bounded queue there and no
// loss, by the switch's marks, the receivers' CNPs and the CNPs that the switch lets
// through. When another leg becomes the slowest, the source follows within a second.
func TestRateFollowsTheSlowestLeg(t *testing.T) {
	r := congestedRig(t, &dcqcn.Config{LineRate: 80e6})
	r.setRate("p2", 16e6)
	p := r.pump()
	check := func(slow int, want float64) {
		t.Helper()
		p.goodput(time.Second, slow) // to follow
		machine := labtest.Watch()
		// A busy machine may stop all of this for a while: one undisturbed second out of
		// some is enough.
		for range 5 {
			got, depth := p.goodput(time.Second, slow)
			st := r.hosts[0].qp.(interface{ Stats() endpoint.QPStats }).Stats()
			port := r.ports()[slow]
			t.Logf("%s is slow: %.1f Mbit/s of %.0f; rate of the source %.1f Mbit/s, %d CNPs, %d packets sent again (%d timeouts, %d NAKs); mean queue %d bytes, %+v",
				port.Name, got/1e6, want/1e6, float64(st.Rate)/1e6, st.CNPsReceived, st.Retransmitted, st.Timeouts, st.NAKs, depth, port.Egress)
			if got > 0.75*want && got < 1.05*want && depth < maxMean {
				return
			}
		}
		machine.Timing(t, "%.0f Mbit/s with a mean queue below %d bytes: not in five seconds", want/1e6, maxMean)
	}
	check(1, 16e6)
	r.setRate("p3", 8e6)
	r.setRate("p2", linkrate.None)
	check(2, 8e6)
	r.setRate("p4", 16e6)
	r.setRate("p3", linkrate.None)
	check(3, 16e6)
	p.stop()
	r.same(0)
	for i, port := range r.ports() {
		if port.Egress.Dropped > 0 {
			t.Errorf("%s dropped %d frames", port.Name, port.Egress.Dropped)
		}
		if slow := i > 0; slow != (port.Egress.CEMarked > 0) {
			t.Errorf("%s marked %d frames", port.Name, port.Egress.CEMarked)
		}
	}
}

// The same source without congestion control keeps the queue full, so that the test
// above proves something. Even so nothing is dropped: copies that the queue cannot take
// wait in the group's store, and the other legs get no packet twice for it.
func TestWithoutCongestionControlTheStoreIsTheQueue(t *testing.T) {
	r := congestedRig(t, nil)
	r.setRate("p2", 16e6)
	p := r.pump()
	p.goodput(500*time.Millisecond, 1)
	got, depth := p.goodput(2*time.Second, 1)
	p.stop()
	r.same(0)
	e := r.ports()[1].Egress
	t.Logf("%.1f Mbit/s of 16, mean queue %d bytes, %+v", got/1e6, depth, e)
	if got < 0.85*16e6 || got > 1.05*16e6 {
		t.Errorf("%.1f Mbit/s, want about 16", got/1e6)
	}
	// Deferred may be 0: a leg that is behind for another reason, such as a lost packet, is
	// offered only what its queue takes.
	full := e.MaxDepthBytes > e.MaxBytes-2*1514
	if depth < maxMean || !full || e.Dropped > 0 || e.CEMarked > 0 {
		t.Errorf("mean queue %d bytes, was full %v; %d frames dropped, %d marked that nobody said may be marked", depth, full, e.Dropped, e.CEMarked)
	}
}
