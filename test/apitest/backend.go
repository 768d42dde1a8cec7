// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package apitest has a backend for tests of the API's users: it answers from memory
// and records the calls.
package apitest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/api"
)

// Backend is an api.Backend. Change its fields only before it is served; Fail, if set,
// is every method's error.
type Backend struct {
	GroupList []api.Group
	GoneList  []api.Group
	PortList  []api.Port
	Switches  api.Topology
	Totals    *api.Stats
	Machine   *api.Kernel
	EventList []api.Event
	Fail      error

	Traced     []api.TracePacket // what a trace has
	TraceNotes []string
	TracePause time.Duration // time before each packet of a trace
	TraceCosts []api.TraceCost

	mu         sync.Mutex
	registered []api.Register
	created    []api.CreateGroup
	changes    []api.Change
	stopTrace  chan struct{} // the channel that stops the last trace
}

var _ api.Backend = (*Backend)(nil)

// Audit implements api.Backend.
func (b *Backend) Audit(c *api.Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changes = append(b.changes, *c)
}

// Changes returns the arguments of Audit's calls, in order.
func (b *Backend) Changes() []api.Change {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.changes)
}

// Registered returns the arguments of Register's calls, in order.
func (b *Backend) Registered() []api.Register {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.registered)
}

// Created returns the arguments of CreateGroup's calls, in order.
func (b *Backend) Created() []api.CreateGroup {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.created)
}

// Groups implements api.Backend.
func (b *Backend) Groups(q *api.GroupQuery) (list []api.Group, _ error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.GroupList {
		if g := &b.GroupList[i]; q == nil || q.Selects(g) && (q.Limit == 0 || len(list) < q.Limit) {
			list = append(list, *g)
		}
	}
	return list, b.Fail
}

// BusiestGroups returns the first n groups, and how many others there are.
func (b *Backend) BusiestGroups(n int) ([]api.Group, int, error) {
	list, err := b.Groups(nil)
	return list[:min(n, len(list))], max(0, len(list)-n), err
}

// EndedGroups implements api.Backend.
func (b *Backend) EndedGroups() ([]api.Group, error) { return b.GoneList, b.Fail }

// Group implements api.Backend.
func (b *Backend) Group(ip netip.Addr) (*api.Group, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Fail != nil {
		return nil, b.Fail
	}
	for i := range b.GroupList {
		if b.GroupList[i].IP == ip {
			g := b.GroupList[i]
			return &g, nil
		}
	}
	return nil, unknown(ip)
}

// Register implements api.Backend: it remembers r and has the group from then
// on. A group in 192.0.2.0/24 is rejected.
func (b *Backend) Register(r *api.Register) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Fail != nil {
		return b.Fail
	}
	if netip.MustParsePrefix("192.0.2.0/24").Contains(r.Group) {
		return &api.Error{Message: "not a group prefix", Reason: "not_group_prefix"}
	}
	for i := range b.GroupList {
		if o := &b.GroupList[i]; o.IP == r.Group && !r.Replace {
			return &api.Error{Reason: api.ReasonGroupExists, Message: fmt.Sprintf("group %s is registered already, by its master at %s", o.IP, o.Master)}
		}
	}
	b.registered = append(b.registered, *r)
	g := api.Group{IP: r.Group, QPN: r.QPN, PMTU: r.PMTU, Policy: r.Policy, Origin: "api", Epoch: 1, State: "idle"}
	for _, m := range r.Members {
		g.Members = append(g.Members, api.Member{IP: m.IP, QPN: m.QPN, Role: "receiver", Live: true, Window: m.Window != nil})
	}
	b.GroupList = append(slices.DeleteFunc(slices.Clone(b.GroupList), func(o api.Group) bool { return o.IP == r.Group }), g)
	return nil
}

// Delete implements api.Backend.
func (b *Backend) Delete(ip netip.Addr) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Fail != nil {
		return b.Fail
	}
	n := len(b.GroupList)
	b.GroupList = slices.DeleteFunc(slices.Clone(b.GroupList), func(g api.Group) bool { return g.IP == ip })
	if len(b.GroupList) == n {
		return unknown(ip)
	}
	return nil
}

// CreateGroup implements api.Backend: it remembers g.
func (b *Backend) CreateGroup(g *api.CreateGroup) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Fail != nil {
		return b.Fail
	}
	if slices.ContainsFunc(b.GroupList, func(o api.Group) bool { return o.IP == g.Group }) {
		return &api.Error{Message: fmt.Sprintf("group %s is registered", g.Group), Reason: api.ReasonGroupExists}
	}
	b.created = append(b.created, *g)
	return nil
}

// AddMember implements api.Backend.
func (b *Backend) AddMember(ip netip.Addr, m *api.AddMember) error {
	return b.change(ip, func(g *api.Group) error {
		at := slices.IndexFunc(g.Members, func(o api.Member) bool { return o.IP == m.IP })
		if at >= 0 && !m.Replace {
			return &api.Error{Message: fmt.Sprintf("%s is a member of group %s already", m.IP, ip), Reason: "overlapping members"}
		}
		n := api.Member{IP: m.IP, QPN: m.QPN, Role: "joining", Live: true, Window: m.Window != nil}
		if at >= 0 {
			g.Members[at] = n
		} else {
			g.Members = append(g.Members, n)
		}
		return nil
	})
}

// RemoveMember implements api.Backend.
func (b *Backend) RemoveMember(ip, member netip.Addr) error {
	return b.change(ip, func(g *api.Group) error {
		at := slices.IndexFunc(g.Members, func(o api.Member) bool { return o.IP == member })
		if at < 0 {
			return &api.Error{Message: fmt.Sprintf("%s is not a member of group %s", member, ip), Reason: api.ReasonUnknownMember}
		}
		g.Members = slices.Delete(g.Members, at, at+1)
		return nil
	})
}

// MoveMember implements api.Backend: a member is at any port that m names.
func (b *Backend) MoveMember(ip, member netip.Addr, m *api.MoveMember) error {
	return b.change(ip, func(g *api.Group) error {
		at := slices.IndexFunc(g.Members, func(o api.Member) bool { return o.IP == member })
		switch {
		case at < 0:
			return &api.Error{Message: fmt.Sprintf("%s is not a member of group %s", member, ip), Reason: api.ReasonUnknownMember}
		case m.Port == "":
			return &api.Error{Message: fmt.Sprintf("%s was not seen anywhere else", member), Reason: api.ReasonMove}
		}
		g.Members[at].Port = m.Port
		return nil
	})
}

func (b *Backend) change(ip netip.Addr, f func(*api.Group) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Fail != nil {
		return b.Fail
	}
	for i := range b.GroupList {
		if b.GroupList[i].IP == ip {
			b.GroupList[i].Members = slices.Clone(b.GroupList[i].Members)
			return f(&b.GroupList[i])
		}
	}
	return unknown(ip)
}

// Events implements api.Backend. It waits until ctx ends, as for events that never
// come.
func (b *Backend) Events(ctx context.Context, after uint64) (*api.Events, error) {
	if b.Fail != nil {
		return nil, b.Fail
	}
	es := &api.Events{Events: []api.Event{}, Last: uint64(len(b.EventList))}
	for _, e := range b.EventList {
		if e.Seq > after {
			es.Events = append(es.Events, e)
		}
	}
	if len(es.Events) == 0 {
		<-ctx.Done()
	}
	return es, nil
}

// Ports implements api.Backend.
func (b *Backend) Ports() ([]api.Port, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.PortList), b.Fail
}

// Reload implements api.Reloader.
func (b *Backend) Reload(q api.Reload) (*api.Reloaded, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Fail != nil {
		return nil, b.Fail
	}
	applied, lost, ended := []string{"envelope.keys", "ports[p1].rate"}, 0, []netip.Addr(nil)
	if q.Force {
		applied, lost = append(applied, "ports[p2]"), 2
		ended = []netip.Addr{netip.MustParseAddr("10.77.254.9"), netip.MustParseAddr("fd77::6c65:9")}
	}
	return &api.Reloaded{
		Keys: []uint16{1, 7}, Applied: applied, Unchanged: []string{"umem.frames"},
		NeedsRestart: []api.NeedsRestart{{Key: "psn_probe", Reason: "the workers are made with it"}},
		MembersLost:  lost, GroupsEnded: ended,
	}, nil
}

// SetPort implements api.Backend.
func (b *Backend) SetPort(name string, s *api.SetPort) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Fail != nil {
		return b.Fail
	}
	i := slices.IndexFunc(b.PortList, func(p api.Port) bool { return p.Name == name })
	if i < 0 {
		return &api.Error{Message: fmt.Sprintf("there is no port %s", name), Reason: api.ReasonUnknownPort}
	}
	b.PortList = slices.Clone(b.PortList)
	b.PortList[i].Rate = *s.Rate
	return nil
}

// Topology implements api.Backend.
func (b *Backend) Topology() (*api.Topology, error) {
	if b.Fail != nil {
		return nil, b.Fail
	}
	t := b.Switches
	return &t, nil
}

// Stats implements api.Backend.
func (b *Backend) Stats() (*api.Stats, error) { return b.Totals, b.Fail }

// Kernel implements api.Backend.
func (b *Backend) Kernel() (*api.Kernel, error) { return b.Machine, b.Fail }

func unknown(ip netip.Addr) error {
	return &api.Error{Message: fmt.Sprintf("no group %s is registered", ip), Reason: api.ReasonUnknownGroup}
}
