// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/observe/watch"
)

// points collects the values of the history's series at a sample.
type points struct {
	list []point
	over time.Duration // the time since the sample before
}

// put adds the mean of a rate. name are the parts of the series' name.
func (p *points) put(value float64, name ...string) {
	p.list = append(p.list, point{series: strings.Join(name, "/"), value: value})
}

// peak adds a level.
func (p *points) peak(value float64, name ...string) {
	p.list = append(p.list, point{series: strings.Join(name, "/"), value: value, peak: true})
}

// pointsOf has the values of the history's series at a sample; none without one before it. Series of
// the switch come first, as the history has room for a number of them.
func pointsOf(x, before *watch.Sample) []point {
	p := &points{over: x.Since(before)}
	if p.over <= 0 {
		return nil
	}
	out := 0.0
	for i := range x.Ports {
		out += x.Ports[i].TxBitRate
	}
	p.put(8*watch.Per(before.Stats.RxBytes, x.Stats.RxBytes, p.over), "switch", "in")
	p.put(out, "switch", "out")
	p.put(watch.Per(before.Stats.Resent, x.Stats.Resent, p.over), "switch", "resent")
	p.put(watch.Per(dropped(before.Stats), dropped(x.Stats), p.over), "switch", "dropped")
	for i := range x.Ports {
		port := &x.Ports[i]
		p.put(port.RxBitRate, "port", port.Name, "in")
		p.put(port.TxBitRate, "port", port.Name, "out")
	}
	for i := range x.Groups {
		if g := &x.Groups[i]; g.Source.IsValid() && g.Rates != nil {
			p.group(g, before.Group(g.IP))
		}
	}
	return p.list
}

// dropped is the number of packets that were lost or come from a mistake.
func dropped(s *api.Stats) (n uint64) {
	for _, k := range s.Drops {
		n += k
	}
	return n
}

// group adds a group that has had a source, and its receivers while data is under way.
func (p *points) group(g, before *watch.Group) {
	ip := g.IP.String()
	p.put(g.BitRate, "group", ip, "in")
	p.put(g.Rates.Repairs, "group", ip, "resent")
	if g.Rates.DataIn == 0 && g.Unacknowledged() == 0 {
		return
	}
	was := make(map[string]*api.Member, len(before.Members))
	for i := range before.Members {
		was[before.Members[i].IP.String()] = &before.Members[i]
	}
	for i := range g.Members {
		m := &g.Members[i]
		if m.IP == g.Source {
			continue
		}
		member := m.IP.String()
		p.peak(float64(m.Lag), "group", ip, member, "lag")
		if b := was[member]; b != nil && b.Cost != nil && m.Cost != nil {
			p.put(watch.Per(b.Cost.Repaired, m.Cost.Repaired, p.over), "group", ip, member, "resent")
			p.put(max(0, m.Cost.Waited-b.Cost.Waited)/p.over.Seconds(), "group", ip, member, "waited")
		}
	}
}
