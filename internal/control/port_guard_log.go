// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/dataplane/iface"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
	"github.com/gleam-rdma/gleam/rocev2"
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
	lastMAC rocev2.MAC // the MAC of the last dropped frame
	frames  uint64     // number of drops since gleamd started
	own     bool       // lastMAC is the address of a port of this switch
}

// portGuardLog reports guardDrops, in one line per port, reason and interval.
type portGuardLog struct {
	mu      sync.Mutex
	ports   []guardedPort // ports by slot
	sampler *sampler[guardDrop]
	notify  Notify
	// strips reports whether a port's interface takes VLAN tags off before XDP sees the frames;
	// nil: it is not known.
	strips func(port string) bool
}

type guardedPort struct {
	name     string
	counters guardCounters
	counted  [bpf.NumReasons]uint64
	last     [bpf.NumReasons]guardFrame
	mac      rocev2.MAC // the MAC of the port
	blocked  bool       // its bridge does not forward there
}

// guardFrame is the last frame that was dropped for a reason. Its time is zero if there was none.
type guardFrame struct {
	mac rocev2.MAC
	at  time.Time
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
	x := guardedPort{name: p.Name, mac: p.MAC, blocked: p.bridgeState.Blocked}
	if p.Program != nil {
		x.counters = p.Program
	}
	if was := &g.ports[pi]; was.counters == x.counters {
		x.counted, x.last = was.counted, was.last
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
			p.last[r] = guardFrame{o.lastMAC, time.Now()}
			if o.own = g.isOwn(o.lastMAC); o.own && p.blocked {
				continue // announcements of other ports, by a second link: the bridge blocks it for that
			}
			if _, report := g.sampler.add(now, i*int(bpf.NumReasons)+int(r), o); report {
				g.log(o, 0)
			}
		}
	}
	g.sampler.due(now, g.log)
}

// describe adds to the ports, by slot, what their guards have dropped last.
func (g *portGuardLog) describe(list []api.Port) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range min(len(list), len(g.ports)) {
		for r, last := range g.ports[i].last {
			if last.at.IsZero() {
				continue
			}
			if list[i].Guard == nil {
				list[i].Guard = make(map[string]api.GuardDrop)
			}
			list[i].Guard[bpf.Reason(r).String()] = api.GuardDrop{MAC: last.mac.String(), Time: last.at}
		}
	}
}

// isOwn reports whether a port of the switch has this MAC address.
func (g *portGuardLog) isOwn(mac rocev2.MAC) bool {
	return slices.ContainsFunc(g.ports, func(p guardedPort) bool { return p.name != "" && p.mac == mac })
}

func (g *portGuardLog) log(o guardDrop, _ uint64) {
	meaning := o.reason.Text()
	switch {
	case o.own:
		meaning = checks.OwnFrame
	case o.reason == bpf.DropPortVLAN && g.strips != nil && g.strips(o.port):
		meaning = "the interface takes VLAN tags off before XDP sees the frames (RX VLAN offload), so that tagged ones count as untagged ones, and these are in no VLAN of the port: ethtool -K " + o.port + " rxvlan off"
	}
	g.notify(true, "frames were dropped by the port guard", "port", o.port, "mac", o.lastMAC, "reason", o.reason.String(),
		"frames", o.frames, "meaning", meaning)
}

// stripsTags reports whether a port's interface takes VLAN tags off.
func (e *Engine) stripsTags(port string) (strips bool) {
	_ = e.plane.Within(func() error { // an error: it is not known
		on, err := iface.Features(port)
		strips = err == nil && on[iface.FeatureVLAN]
		return nil
	})
	return strips
}
