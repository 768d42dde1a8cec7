// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/api"
)

// Group is a group with its rates.
type Group struct {
	api.Group
	Rates   *Rates  `json:"rates,omitempty"` // absent in the first sample of a registration
	BitRate float64 `json:"bit_rate"`        // bits of the source's payload without repetitions, per second
}

// Port is a port with its rates: frames per second, and bits per second on an Ethernet link.
type Port struct {
	api.Port
	RxRate    float64 `json:"rx_rate"`
	TxRate    float64 `json:"tx_rate"`
	DropRate  float64 `json:"drop_rate"` // copies and answers that found no room
	RxBitRate float64 `json:"rx_bit_rate"`
	TxBitRate float64 `json:"tx_bit_rate"` // the rate without the fast path's copies, whose bytes are not counted
}

// Sample is what a switch says of its groups and ports at one moment, with rates since an earlier
// sample.
type Sample struct {
	Time    time.Time   `json:"time"`
	Version api.Version `json:"version"`
	Groups  []Group     `json:"groups"`
	Ports   []Port      `json:"ports"`
	Stats   *api.Stats  `json:"stats"`
}

// Since returns the time since an earlier sample of the same gleamd; 0 if there is none.
func (s *Sample) Since(before *Sample) time.Duration {
	if before == nil || !before.Version.Started.Equal(s.Version.Started) || before.Version.Pid != s.Version.Pid {
		return 0
	}
	return max(0, s.Time.Sub(before.Time))
}

// Fill notes groups and ports with their changes since an earlier sample; nil: there is none.
func (s *Sample) Fill(groups []api.Group, ports []api.Port, before *Sample) {
	s.Groups, s.Ports = make([]Group, len(groups)), make([]Port, len(ports))
	over := s.Since(before)
	was, wasPort := make(map[netip.Addr]*Group), make(map[string]*Port)
	if over > 0 {
		for i := range before.Groups {
			was[before.Groups[i].IP] = &before.Groups[i]
		}
		for i := range before.Ports {
			wasPort[before.Ports[i].Name] = &before.Ports[i]
		}
	}
	for i := range groups {
		g := &s.Groups[i]
		g.Group = groups[i]
		if b := was[g.IP]; b != nil {
			if g.Rates = Between(&b.Group, &g.Group, over); g.Rates != nil {
				g.BitRate = 8 * Per(b.Counters.GoodBytes, g.Counters.GoodBytes, over)
			}
		}
	}
	for i := range ports {
		p := &s.Ports[i]
		p.Port = ports[i]
		b := wasPort[p.Name]
		if b == nil {
			continue
		}
		p.RxRate, p.TxRate, p.DropRate = Per(b.RxFrames, p.RxFrames, over), Per(b.TxFrames, p.TxFrames, over), Per(b.Egress.Dropped, p.Egress.Dropped, over)
		p.RxBitRate, p.TxBitRate = 8*Per(b.RxBytes, p.RxBytes, over), 8*Per(b.TxBytes, p.TxBytes, over)
		if f, g := b.FastPath, p.FastPath; f != nil && g != nil {
			p.TxRate += Per(f.Sent, g.Sent, over)
		}
	}
}

// Group returns the group of an address, or nil.
func (s *Sample) Group(ip netip.Addr) *Group {
	for i := range s.Groups {
		if s.Groups[i].IP == ip {
			return &s.Groups[i]
		}
	}
	return nil
}
