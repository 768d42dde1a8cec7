// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package top is `gleam top`: groups, members and ports of a switch as they change.
package top

import (
	"context"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/observe/watch"
)

// Names of package watch.
type (
	// Sample is what a switch says at one moment, with rates since the sample before.
	Sample = watch.Sample
	// Group is a group with its rates.
	Group = watch.Group
)

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
	s.Fill(groups, ports, before)
	return s, nil
}

// groupOf returns the group of an address as text, or nil.
func groupOf(s *Sample, ip string) *Group {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return nil
	}
	return s.Group(addr)
}
