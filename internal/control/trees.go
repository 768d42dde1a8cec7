// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/neighbours"
	"github.com/gleam-rdma/gleam/mcast"
)

// Registration through other switches. The directory is the registrar's Planner: it has the
// ways to members, and checks those that are here (tree_group.go).

// Ways returns how group packets get to a host. It implements envelope.Planner.
func (d *directory) Ways(host netip.Addr) envelope.Ways {
	w := d.waysTo(host)
	switch {
	case w.here:
		return envelope.Ways{Verdict: envelope.Verdict{Kind: envelope.VerdictAccepted}, Here: true}
	case len(w.hops) > 0:
		return envelope.Ways{Verdict: envelope.Verdict{Kind: envelope.VerdictAccepted}, Hops: w.hops}
	case w.pending:
		return envelope.Ways{Verdict: envelope.Verdict{Kind: envelope.VerdictLater, Problem: envelope.Problem{Reason: envelope.UnknownMemberLocation}}}
	}
	x := noWay{host, w.err}
	if suppressed, report := d.noWays.add(d.now(), 0, x); report {
		d.logNoWay(x, suppressed)
	}
	p := envelope.Problem{Reason: envelope.UnknownMemberLocation}
	if h := d.hosts.Of(host); h != nil && len(h.Hops()) > 0 {
		p.Reason, p.Value = envelope.NoWay, hopNumber(h.Hops()[0].Gateway)
	}
	return envelope.Ways{Verdict: rejected(p)}
}

// noWay is a member that the switch knows no way to. Any host with a key can have such ones looked up without end.
type noWay struct {
	host netip.Addr
	err  error
}

func (d *directory) logNoWay(x noWay, suppressed uint64) {
	d.notify(true, "the switch knows no way to a member", "member", x.host, "error", x.err, "suppressed", suppressed)
}

// hopNumber returns a next hop as the Value of an envelope.Problem.
func hopNumber(a netip.Addr) uint64 {
	b := a.As16()
	if a.Is4() {
		return uint64(binary.BigEndian.Uint32(b[12:]))
	}
	return binary.BigEndian.Uint64(b[8:])
}

// setRemote records the members of g that are behind other switches.
func (g *group) setRemote() {
	g.remote = nil
	for i := range g.slots {
		if s := &g.slots[i]; !s.isHere() {
			if g.remote == nil {
				g.remote = make(map[netip.Addr]struct{})
			}
			g.remote[s.record.IP] = struct{}{}
		}
	}
}

// trafficInterval is the time over which traffic is measured.
const trafficInterval = time.Second

// portTraffic is what left by the ports in the last interval.
type portTraffic struct {
	at     time.Duration
	total  []uint64 // frames, by port, at that time
	lately []uint64
}

// Traffic returns the frames that were sent to a neighbour lately. It implements
// envelope.Planner.
func (d *directory) Traffic(n mcast.Neighbor) uint64 {
	l, ok := d.switches.LinkTo(n)
	if !ok {
		return 0
	}
	t := &d.traffic
	if now := d.now(); t.total == nil || now-t.at >= trafficInterval {
		list := make([]api.Port, len(d.ports))
		if d.plane.DescribePorts(list) != nil {
			return 0 // the switch has stopped
		}
		lately, total := make([]uint64, len(list)), make([]uint64, len(list))
		for i := range list {
			if total[i] = list[i].TxFrames; t.total != nil {
				lately[i] = (total[i] - t.total[i]) * uint64(time.Second) / uint64(now-t.at)
			}
		}
		t.at, t.total, t.lately = now, total, lately
	}
	return t.lately[l.Port]
}

// setTrees has the registrar register groups over several switches.
func (c *control) setTrees(cfg *config.Switch) error {
	keys, send := neighbours.KeysOf(cfg)
	if err := c.registrar.SetSwitch(envelope.SwitchConfig{
		ID: envelope.SwitchID(c.switches.Hellos.ID()), Auth: envelope.Auth{Keys: keys, Send: send}, Planner: c.dir,
		Grace: cfg.GracePeriod,
	}); err != nil {
		return fmt.Errorf("switch: %w", err)
	}
	return nil
}

// tellRegistrar gives the registrar an adjacency that has changed.
func (c *control) tellRegistrar(a *neighbours.Adjacency) {
	if !a.Up {
		c.registrar.SetNeighbour(c.now(), a.Number, nil)
		return
	}
	c.registrar.SetNeighbour(c.now(), a.Number, &envelope.Adjacency{
		ID: envelope.SwitchID(a.ID), Session: a.Session, MTU: min(a.MTU, c.ports[a.Port].mtu), Port: c.ports[a.Port].Name,
	})
}

// serveRelay passes a datagram of a neighbour to the registrar. Any other than a relay is
// a host's, which the neighbour has forwarded.
func (c *control) serveRelay(d *dataplane.Datagram) {
	if !envelope.IsRelay(d.Payload()) {
		c.serveEnvelope(d)
		return
	}
	c.registrar.InputFromSwitch(c.now(), d.Neighbour, d.Payload(), &c.out)
	x := refusal{reason: c.out.Drop, detail: c.out.Detail, group: d.Dst.Addr(), from: d.Src, port: c.ports[d.From.Port].Name, mac: d.From.MAC}
	d.Release()
	c.sendOutput()
	if x.reason == envelope.NoDrop || x.reason.Normal() || x.reason == envelope.UnknownGroupMsg {
		return
	}
	if suppressed, report := c.refused.envelopes.add(c.now(), int(x.reason), x); report {
		c.logRefusal(x, suppressed)
	}
}

// moreText are the further reasons of a rejection.
func moreText(e *envelope.Event) (s string) {
	for i := range e.More {
		s += "; " + e.More[i].Error()
	}
	return s
}

// generationOfTree returns how often the tree of a group was built; g may be nil.
func (g *group) generationOfTree() uint64 {
	if g == nil || g.reg.Tree == nil {
		return 0
	}
	return g.reg.Tree.Generation
}
