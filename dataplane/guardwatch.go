// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"context"
	"time"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/rocev2"
)

// The XDP programs count what they drop on behalf of the source guard, and note the
// MAC address that the last of it came from. A goroutine of its own tells the
// operator: neither workers nor the control loop wait for the maps.

// Times of the guard's watch: between two looks, and between two log lines about one
// reason at one port.
const (
	guardGap      = time.Second
	guardInterval = 10 * time.Second
)

// guardCounters are the guard's counters of a port: [bpf.PortProgram].
type guardCounters interface {
	Count(bpf.Reason) (uint64, error)
	Offender(bpf.Reason) ([6]byte, error)
}

// offence is what the guard of a port has dropped for one reason.
type offence struct {
	port   string
	reason bpf.Reason
	mac    rocev2.MAC // of the last one
	frames uint64     // dropped since gleamd started
}

// guardWatch tells of offences, one line per port, reason and interval.
type guardWatch struct {
	ports   []guardedPort
	samples *sampler[offence]
	notify  Notify
}

type guardedPort struct {
	name     string
	counters guardCounters
	seen     [bpf.NumReasons]uint64
}

func newGuardWatch(ports []*port, notify Notify) *guardWatch {
	g := &guardWatch{notify: notify, samples: newSampler[offence](len(ports)*int(bpf.NumReasons), guardInterval)}
	for _, p := range ports {
		g.ports = append(g.ports, guardedPort{name: p.name, counters: p.prog})
	}
	return g
}

// run looks until ctx ends.
func (g *guardWatch) run(ctx context.Context) {
	start := time.Now()
	tick := time.NewTicker(guardGap)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			g.look(time.Since(start))
		}
	}
}

// look reports what has been dropped since it looked last.
func (g *guardWatch) look(now time.Duration) {
	for i := range g.ports {
		p := &g.ports[i]
		for r := range bpf.NumReasons {
			if !r.Guard() {
				continue
			}
			n, err := p.counters.Count(r)
			if err != nil || n == p.seen[r] {
				continue // maps fail when the port is closed: then nothing is dropped either
			}
			p.seen[r] = n
			o := offence{port: p.name, reason: r, frames: n}
			o.mac, _ = p.counters.Offender(r)
			if _, report := g.samples.add(now, i*int(bpf.NumReasons)+int(r), o); report {
				g.tell(o, 0)
			}
		}
	}
	g.samples.due(now, g.tell)
}

func (g *guardWatch) tell(o offence, _ uint64) {
	g.notify(true, "frames were dropped by the port guard", "port", o.port, "mac", o.mac, "reason", o.reason.String(),
		"frames", o.frames, "meaning", o.reason.Text())
}
