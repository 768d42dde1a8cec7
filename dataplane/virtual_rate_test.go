// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// TestPortRateInVirtualTime is test's TestPortRate without a clock: a queue that is
// kept full, and looked at as irregularly as a worker does on a busy machine, sends
// at the port's rate within 2 % over ten seconds, also after the rate was changed,
// and all at once without a rate.
func TestPortRateInVirtualTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	q := newEgressQueue(256<<10, 1024, 20_000_000)
	now := time.Second
	var tx []xsk.Desc
	fill := func() {
		for q.fits(1126, 1) {
			q.push(xsk.Desc{Len: 1126})
		}
	}
	second := func() (bits float64) {
		for end := now + time.Second; now < end; {
			fill()
			tx = q.release(now, tx[:0], 1024)
			for _, d := range tx {
				bits += 8 * float64(descLinkBytes(d))
			}
			now += time.Duration(rng.IntN(20_000)) * time.Microsecond // less than a full queue takes
		}
		return bits
	}
	for _, rate := range []int64{20_000_000, 40_000_000, 5_000_000} {
		q.setRate(rate)
		second() // what was on the link, and the last look of it
		var sum float64
		for range 10 {
			sum += second()
		}
		if share := sum / 10 / float64(rate); share < 0.98 || share > 1.02 {
			t.Errorf("%d bit/s: %.4f of it were sent", rate, share)
		}
	}
	q.setRate(0)
	fill()
	if n := q.len(); len(q.release(now, tx[:0], 1024)) != n {
		t.Error("without a rate, frames wait")
	}
}

// virtualTree is a source with congestion control, the core, and for each of three
// receivers a port's queue with its marker and a notification point. Nothing of it
// has a clock.
type virtualTree struct {
	t         *testing.T
	sw        *mcast.Switch
	out       mcast.Output
	rp        dcqcn.ReactionPoint
	now       time.Duration
	psn       rocev2.PSN
	una       rocev2.PSN
	queues    [3]egressQueue
	markers   [3]marker
	np        [3]dcqcn.NotificationPoint
	delivered [3]int // bits
	depth     int    // the depth of the slow queue, summed up over the ticks
	ticks     int
}

// input gives the core a packet, and has its copies and feedback carried.
func (v *virtualTree) input(p mcast.Packet) {
	p.Group, p.DestQP, p.Verified = testGroup, 0x4242, true
	v.sw.Input(v.now, &p, &v.out)
	for _, c := range v.out.Copies {
		q := &v.queues[c.Leg-1]
		if !q.fits(1126, 1) {
			v.t.Fatalf("the queue of port %d is full", c.Leg)
		}
		options := uint64(c.PSN) << 1
		if v.markers[c.Leg-1].mark(q.bytes) {
			options |= 1
		}
		q.push(xsk.Desc{Addr: options, Len: 1126})
	}
	for _, f := range v.out.Feedback {
		switch {
		case f.Op == rocev2.CNP:
			v.rp.OnCNP(v.now)
		case f.Syndrome.Kind() == rocev2.KindACK:
			v.una = f.PSN.Next()
		default:
			v.t.Fatalf("NAK %+v", f)
		}
	}
}

// run lets d pass and returns the goodput of receiver slow and the mean depth of its
// port's queue.
func (v *virtualTree) run(d time.Duration, slow int) (goodput, depth float64) {
	const tick = 100 * time.Microsecond
	v.delivered, v.depth, v.ticks = [3]int{}, 0, 0
	var tx []xsk.Desc
	for end := v.now + d; v.now < end; v.now += tick {
		for v.rp.NextSend(v.now) <= v.now && v.psn.Sub(v.una) < 128 {
			v.rp.OnSent(v.now, 1126)
			v.input(mcast.Packet{Src: fakeHost(0), Op: rocev2.SendOnly, AckReq: true, PSN: v.psn, Payload: 1024})
			v.psn = v.psn.Next()
		}
		v.depth, v.ticks = v.depth+v.queues[slow].bytes, v.ticks+1
		for i := range v.queues {
			tx = v.queues[i].release(v.now, tx[:0], 1024)
			for _, f := range tx {
				v.delivered[i] += 8 * descLinkBytes(f)
				from := fakeHost(i + 1)
				v.input(mcast.Packet{Src: from, Op: rocev2.Acknowledge, PSN: rocev2.PSN(f.Addr >> 1), Syndrome: rocev2.SyndromeACK})
				if f.Addr&1 != 0 && v.np[i].OnCE(v.now) {
					v.input(mcast.Packet{Src: from, Op: rocev2.CNP, BECN: true})
				}
			}
		}
	}
	return float64(v.delivered[slow]) / d.Seconds(), float64(v.depth) / float64(v.ticks)
}

// TestRateFollowsTheSlowestLegInVirtualTime is test's TestRateFollowsTheSlowestLeg
// without a clock: one leg after the other is the bottleneck, the source's rate
// follows it, and the queue before it stays short.
func TestRateFollowsTheSlowestLegInVirtualTime(t *testing.T) {
	v := &virtualTree{t: t, sw: mcast.New(mcast.Limits{Groups: 1})}
	var err error
	if v.rp, err = dcqcn.NewReactionPoint(dcqcn.Config{LineRate: 80e6}); err != nil {
		t.Fatal(err)
	}
	spec := mcast.GroupSpec{IP: testGroup, GroupParams: mcast.GroupParams{QPN: 0x4242, PathMTU: 1024}}
	for i := range 4 {
		spec.Legs = append(spec.Legs, mcast.LegSpec{Port: mcast.Port(i)})
		spec.Members = append(spec.Members, mcast.MemberSpec{MemberRecord: mcast.MemberRecord{IP: fakeHost(i), QPN: rocev2.QPN(0x100 + i)}, Leg: mcast.LegID(i)})
	}
	if err := v.sw.Apply(0, mcast.PutGroup{Spec: spec}, &v.out); err != nil {
		t.Fatal(err)
	}
	for i := range v.queues {
		v.queues[i] = newEgressQueue(1<<20, 1024, 100_000_000)
		v.markers[i] = newMarker(config.ECN{KMin: 8 << 10, KMax: 32 << 10, PMax: 0.1}, uint64(i))
		v.np[i] = dcqcn.NewNotificationPoint(v.rp.Config().CNPInterval)
	}
	for _, c := range []struct {
		slow int
		rate int64
	}{{0, 16e6}, {1, 8e6}, {2, 16e6}} {
		for i := range v.queues {
			v.queues[i].setRate(100_000_000)
		}
		v.queues[c.slow].setRate(c.rate)
		v.run(2*time.Second, c.slow)
		got, depth := v.run(2*time.Second, c.slow)
		t.Logf("leg %d at %d Mbit/s: %.1f, mean queue %.0f bytes, rate %d", c.slow, c.rate/1e6, got/1e6, depth, v.rp.Rate(v.now))
		if got < 0.75*float64(c.rate) || got > 1.01*float64(c.rate) || depth > 64<<10 {
			t.Errorf("leg %d at %d Mbit/s: %.1f, mean queue %.0f bytes; want 75 %% and no more than 64 KiB", c.slow, c.rate/1e6, got/1e6, depth)
		}
	}
}
