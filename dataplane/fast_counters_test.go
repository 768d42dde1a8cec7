// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// wireCounts are what hosts have sent to the group and received from it.
type wireCounts struct {
	sent, received uint64 // packets of the hosts, with those that they lose
	dropped        uint64 // packets that interfaces dropped
}

func (x *fastLab) wire() (c wireCounts) {
	x.Helper()
	for _, h := range x.hosts {
		s := h.qp.Stats()
		c.sent, c.received = c.sent+s.TxPackets, c.received+s.RxPackets
	}
	for _, h := range x.hosts[:len(x.star.Hosts)] {
		s := h.device.Stats()
		c.received += s.RxLoss
		l, err := h.host.NS.Handle().LinkByName(h.host.Interface)
		if err != nil {
			x.Fatal(err)
		}
		c.dropped += s.TxDropped + l.Attrs().Statistics.RxDropped + l.Attrs().Statistics.TxDropped
		if l, err = x.star.Switch.Handle().LinkByName(x.star.Ports[h.port]); err != nil {
			x.Fatal(err)
		}
		c.dropped += l.Attrs().Statistics.RxDropped + l.Attrs().Statistics.TxDropped
	}
	return c
}

// The counters of a group are those of the wire, whichever path each packet takes, with late
// legs, losses at a receiver, and other members that send: each packet of a source is one of
// DataIn; each copy, and no other, is one of Copies, and those of the programs one of what the
// ports have sent; and each frame that the programs have left to the worker has its reason.
func TestFastCountersAreExact(t *testing.T) {
	x := newFastLab(t, fastLabConfig{hosts: 4, change: func(x *fastLab) {
		x.plane.workers.all[0].fast.shared.backoff = 100 * time.Microsecond
	}})
	x.steady(0, func() { x.send(0, 5, 10000, x.all(0)...) })
	x.lose(2, 0.003)
	x.rests()
	w := x.plane.workers.all[0]
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	machine := labtest.Watch()
	before, sent, all := x.wire(), x.transmitted(), x.plane.stats(t)
	was := x.state()
	while(func(stop <-chan struct{}) {
		for tick := time.NewTicker(300 * time.Microsecond); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
				w.do(func() { w.flip(r) })
			}
		}
	}, func() {
		x.send(0, 10, 10000, x.all(0)...)
		x.send(1, 5, 10000, x.all(1)...)
		x.send(0, 5, 20000, x.all(0)...)
	})
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		is, s := x.wire(), x.state()
		wrong := x.compare(before, is, was, s, x.transmitted()-sent, all, x.plane.stats(t))
		if wrong == "" {
			t.Logf("%+v, before %+v; %+v", is, before, s.Fast)
			return
		}
		if is.dropped != before.dropped {
			t.Logf("interfaces have dropped %d frames: nothing can be said", is.dropped-before.dropped)
			return
		}
		if time.Now().After(end) {
			// A host's socket, or a port's, that is behind loses frames that nobody counts.
			machine.Timing(t, "%s\n%+v, before %+v\n%+v\n%+v, before\n%+v\n%+v", wrong, is, before, s.Status.Counters, s.Fast, was.Status.Counters, was.Fast)
			return
		}
	}
}

// transmitted is how many copies of the programs the ports have sent.
func (x *fastLab) transmitted() (n uint64) {
	for i := range x.star.Hosts {
		n += x.plane.fast.maps.Transmitted(i).Sent
	}
	return n
}

func (p *Plane) stats(t *testing.T) *api.Stats {
	t.Helper()
	s, err := p.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// compare compares what the switch has counted with what was on the wire. The core counts an ACK,
// too, that a later one of the same batch has replaced; the workers do not.
func (x *fastLab) compare(before, is wireCounts, was, s *GroupState, transmitted uint64, allWas, all *api.Stats) string {
	a, b := &s.Status.Counters, &was.Status.Counters
	byXDP := s.Fast.Packets - was.Fast.Packets + s.Fast.Taken - was.Fast.Taken
	for r := range s.Fast.Left {
		byXDP += s.Fast.Left[r] - was.Fast.Left[r]
	}
	for _, c := range []struct {
		what      string
		got, want uint64
	}{
		{"packets in", a.DataIn + a.FeedbackIn - b.DataIn - b.FeedbackIn, is.sent - before.sent},
		{"packets out", a.Copies - b.Copies + all.FeedbackOut - allWas.FeedbackOut, is.received - before.received},
		{"copies of the switch", all.Copies - allWas.Copies, a.Copies - b.Copies},
		{"copies and ACKs of the programs", s.Fast.Copies + s.Fast.Sent - was.Fast.Copies - was.Fast.Sent, transmitted},
		{"packets that the programs have taken or left", byXDP, is.sent - before.sent},
	} {
		if c.got != c.want {
			return fmt.Sprintf("%d %s, want %d", c.got, c.what, c.want)
		}
	}
	return ""
}
