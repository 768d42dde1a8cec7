// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package top is `gleam top`: groups, members and ports of a switch as they change.
package top

import (
	"context"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/watch"
)

// Sample is what a switch says at one moment, with rates since the sample before.
type Sample struct {
	Time    time.Time   `json:"time"`
	Version api.Version `json:"version"`
	Groups  []Group     `json:"groups"`
	Ports   []Port      `json:"ports"`
	Stats   *api.Stats  `json:"stats"`
}

// Group is a group with its rates.
type Group struct {
	api.Group
	Rates   *watch.Rates `json:"rates,omitempty"` // absent in the first sample of a registration
	BitRate float64      `json:"bit_rate"`        // of the source's payload, per second
}

// Port is a port with its rates, in frames per second.
type Port struct {
	api.Port
	RxRate   float64 `json:"rx_rate"`
	TxRate   float64 `json:"tx_rate"`
	DropRate float64 `json:"drop_rate"` // copies and answers that found no room
}

// source is what samples are taken of; an api.Client is one.
type source interface {
	Version(context.Context) (*api.Version, error)
	Groups(context.Context) ([]api.Group, error)
	Ports(context.Context) ([]api.Port, error)
	Stats(context.Context) (*api.Stats, error)
}

// take asks a switch. before is the sample before; nil for the first.
func take(ctx context.Context, c source, before *Sample) (*Sample, error) {
	v, err := c.Version(ctx)
	if err != nil {
		return nil, err
	}
	s := &Sample{Version: *v}
	groups, err := c.Groups(ctx)
	if err != nil {
		return nil, err
	}
	s.Time = time.Now()
	ports, err := c.Ports(ctx)
	if err != nil {
		return nil, err
	}
	if s.Stats, err = c.Stats(ctx); err != nil {
		return nil, err
	}
	s.rates(groups, ports, before)
	return s, nil
}

// rates notes groups and ports with the changes since a sample.
func (s *Sample) rates(groups []api.Group, ports []api.Port, before *Sample) {
	s.Groups, s.Ports = make([]Group, len(groups)), make([]Port, len(ports))
	var over time.Duration
	was, wasPort := make(map[string]*Group), make(map[string]*Port)
	if before != nil && before.Version.Started.Equal(s.Version.Started) && before.Version.Pid == s.Version.Pid {
		over = s.Time.Sub(before.Time)
		for i := range before.Groups {
			was[before.Groups[i].IP.String()] = &before.Groups[i]
		}
		for i := range before.Ports {
			wasPort[before.Ports[i].Name] = &before.Ports[i]
		}
	}
	for i := range groups {
		g := &s.Groups[i]
		g.Group = groups[i]
		if b := was[g.IP.String()]; b != nil {
			if g.Rates = watch.Between(&b.Group, &g.Group, over); g.Rates != nil {
				g.BitRate = 8 * watch.Per(b.Counters.DataBytes, g.Counters.DataBytes, over)
			}
		}
	}
	for i := range ports {
		p := &s.Ports[i]
		p.Port = ports[i]
		if b := wasPort[p.Name]; b != nil {
			p.RxRate, p.TxRate, p.DropRate = watch.Per(b.RxFrames, p.RxFrames, over), watch.Per(b.TxFrames, p.TxFrames, over), watch.Per(b.Egress.Dropped, p.Egress.Dropped, over)
			if f, g := b.FastPath, p.FastPath; f != nil && g != nil {
				p.TxRate += watch.Per(f.Sent, g.Sent, over)
			}
		}
	}
}
