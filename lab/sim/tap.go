// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/mcast"
)

// Tap is what is observed of a port.
type Tap struct {
	Node    topology.Node
	Port    int32
	Packets bool // those sent and those received
	Every   Time // interval of samples; 0: none
}

// Sample is the state of a tapped port at a time, before what happens then.
type Sample struct {
	At     Time
	Bytes  uint64 // bytes that have left since the sample before
	Queue  int64  // bytes that wait, or are being sent
	Paused bool
}

// Observed is a packet or a sample of a tap.
type Observed struct {
	Tap    int // index in Config.Taps
	At     Time
	Sample *Sample // nil: a packet
	// Frame is the Ethernet frame without its FCS; the bytes of its payload are 0. It is valid until the
	// next call.
	Frame    []byte
	Received bool
}

// tap is what a port's partition notes of it. The samples up to a time follow from the state before
// the next change.
type tap struct {
	packets  bool
	every    Time
	next     Time // sample
	left     uint64
	captured []captured
	samples  []Sample
}

// captured is a packet at a port.
type captured struct {
	at       Time
	e        event
	received bool
	report   mcast.Report // the report of a token message
}

// setTaps makes the taps of the configuration.
func (s *Simulation) setTaps() error {
	if len(s.cfg.Taps) > 0 {
		s.groupsAt = make([][]int32, len(s.part))
	}
	for i, c := range s.cfg.Taps {
		if c.Node < 0 || int(c.Node) >= len(s.part) || c.Port < 0 || int(c.Port) >= len(s.cfg.Topology.Ports(c.Node)) {
			return fmt.Errorf("sim: Taps[%d]: node %d has no port %d", i, c.Node, c.Port)
		}
		o := &s.ports[s.firstPort[c.Node]+uint32(c.Port)]
		if o.tap != nil {
			return fmt.Errorf("sim: Taps[%d]: port %d of %s has a tap already", i, c.Port, s.cfg.Topology.Name(c.Node))
		}
		o.tap = &tap{packets: c.Packets, every: c.Every}
	}
	return nil
}

// startTaps lets the samples begin: the registration is over.
func (s *Simulation) startTaps() {
	for _, c := range s.cfg.Taps {
		o := &s.ports[s.firstPort[c.Node]+uint32(c.Port)]
		o.tap.left, o.tap.next = o.stats.Bytes, c.Every
	}
}

// changes is called before the state of a tapped port changes.
func (t *tap) changes(o *port, now Time) {
	for t.every > 0 && t.next <= now {
		sending := max(o.freeAt-t.next, 0)
		x := Sample{At: t.next, Queue: o.bytesIn(sending)}
		left := o.stats.Bytes - uint64(x.Queue)
		if w := o.wait; w != nil {
			x.Queue += o.bytesIn(w.length)
			x.Paused = w.paused
		}
		x.Bytes, t.left = left-t.left, left
		if x.Bytes > 0 || x.Queue > 0 || x.Paused {
			t.samples = append(t.samples, x)
		}
		t.next += t.every
	}
}

// changes is called before the state of a port changes, which may have a tap.
func (p *port) changes(now Time) {
	if p.tap != nil && now >= 0 {
		p.tap.changes(p, now)
	}
}

// bytesIn returns the bytes that a port sends in a time.
func (p *port) bytesIn(t Time) int64 {
	if p.psByte != 0 {
		return int64(t / p.psByte)
	}
	return int64(math.Round(float64(t) * float64(p.rate) / 8 / float64(topology.Second)))
}

// captureSent notes a packet that begins to leave at a time.
func (p *Partition) captureSent(t *tap, at Time, e *event) {
	x := captured{at: at, e: *e}
	if e.kind == report {
		x.report = p.reports.values[e.aux]
	}
	t.captured = append(t.captured, x)
}

// captureReceived notes a packet that has come to its port.
func (p *Partition) captureReceived(e *event) {
	if !e.isPacket() {
		return
	}
	if t := p.s.ports[e.in].tap; t != nil && t.packets && p.now >= 0 {
		x := captured{at: p.now, e: *e, received: true}
		if e.kind == report {
			x.report = p.reports.values[e.aux]
		}
		t.captured = append(t.captured, x)
	}
}

// Observed calls f for what has been observed at the taps before a time, in the order of time and taps,
// and forgets it. No partition runs meanwhile, and each has served its events up to then.
func (s *Simulation) Observed(until Time, f func(*Observed)) {
	type place struct {
		at     Time
		tap    int
		packet bool
		index  int
	}
	var all []place
	taps := make([]*tap, len(s.cfg.Taps))
	for i, c := range s.cfg.Taps {
		o := &s.ports[s.firstPort[c.Node]+uint32(c.Port)]
		t := o.tap
		taps[i] = t
		t.changes(o, until-1)
		slices.SortStableFunc(t.captured, func(a, b captured) int {
			return cmp.Or(cmp.Compare(a.at, b.at), boolOrder(a.received, b.received))
		})
		for k := range t.samples {
			all = append(all, place{t.samples[k].At, i, false, k})
		}
		for k := range t.captured {
			if t.captured[k].at < until {
				all = append(all, place{t.captured[k].at, i, true, k})
			}
		}
	}
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.tap, b.tap), boolOrder(a.packet, b.packet), cmp.Compare(a.index, b.index))
	})
	buf := make([]byte, frameRoom)
	for _, x := range all {
		out := Observed{Tap: x.tap, At: x.at}
		if !x.packet {
			out.Sample = &taps[x.tap].samples[x.index]
		} else {
			c := &taps[x.tap].captured[x.index]
			out.Received = c.received
			out.Frame = s.frame(buf, &s.cfg.Taps[x.tap], c)
		}
		f(&out)
	}
	for _, t := range taps {
		t.samples = t.samples[:0]
		n := 0
		for n < len(t.captured) && t.captured[n].at < until {
			n++
		}
		t.captured = slices.Delete(t.captured, 0, n)
	}
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
