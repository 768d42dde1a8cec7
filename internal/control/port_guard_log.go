// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/internal/bpf"
	"github.com/gleam-rdma/gleam/internal/rocev2"
)

// The XDP programs count the frames that the port guard drops, and record the MAC address
// of the last one. A separate goroutine reports them to the operator, so that neither
// workers nor the control loop wait for the maps.

// Intervals of the log of the port guard: between two polls, and between two log lines
// about one reason at one port.
const (
	guardPollInterval = time.Second
	guardLogInterval  = 10 * time.Second
)

// guardCounters are the port guard's counters of a port: [bpf.PortProgram].
type guardCounters interface {
	Count(bpf.Reason) (uint64, error)
	LastOffender(bpf.Reason) ([6]byte, error)
}

// guardDrop describes the frames that the guard of a port has dropped for one reason.
type guardDrop struct {
	port    string
	reason  bpf.Reason
	lastMAC rocev2.MAC // of the last dropped frame
	frames  uint64     // number of drops since gleamd started
}

// portGuardLog reports guardDrops, in one line per port, reason and interval.
type portGuardLog struct {
	mu      sync.Mutex
	ports   []guardedPort // by slot
	sampler *sampler[guardDrop]
	notify  Notify
}

type guardedPort struct {
	name     string
	counters guardCounters
	counted  [bpf.NumReasons]uint64
}

func newPortGuardLog(ports []*port, notify Notify) *portGuardLog {
	g := &portGuardLog{notify: notify, sampler: newSampler[guardDrop](len(ports)*int(bpf.NumReasons), guardLogInterval)}
	g.ports = make([]guardedPort, len(ports))
	for i, p := range ports {
		g.setPort(i, p)
	}
	return g
}

// setPort tells the log of the port that slot pi has. Any goroutine may call it.
func (g *portGuardLog) setPort(pi int, p *port) {
	g.mu.Lock()
	defer g.mu.Unlock()
	x := guardedPort{name: p.Name}
	if p.Program != nil {
		x.counters = p.Program
	}
	if was := &g.ports[pi]; was.counters == x.counters {
		x.counted = was.counted
	}
	g.ports[pi] = x
}

// run polls until ctx ends.
func (g *portGuardLog) run(ctx context.Context) {
	start := time.Now()
	tick := time.NewTicker(guardPollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			g.poll(time.Since(start))
		}
	}
}

// poll reports the frames that were dropped since the last poll.
func (g *portGuardLog) poll(now time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.ports {
		p := &g.ports[i]
		for r := range bpf.NumReasons {
			if p.counters == nil || !r.IsGuard() {
				continue
			}
			n, err := p.counters.Count(r)
			if err != nil || n == p.counted[r] {
				continue // maps fail when the port is closed; then nothing is dropped either
			}
			p.counted[r] = n
			o := guardDrop{port: p.name, reason: r, frames: n}
			o.lastMAC, _ = p.counters.LastOffender(r)
			if _, report := g.sampler.add(now, i*int(bpf.NumReasons)+int(r), o); report {
				g.log(o, 0)
			}
		}
	}
	g.sampler.due(now, g.log)
}

func (g *portGuardLog) log(o guardDrop, _ uint64) {
	g.notify(true, "frames were dropped by the port guard", "port", o.port, "mac", o.lastMAC, "reason", o.reason.String(),
		"frames", o.frames, "meaning", o.reason.Text())
}
