// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/fib"
	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// Locator is the part of locate.Locator that the control loop uses. Its calls may take
// long.
type Locator interface {
	Locate(ip netip.Addr) (locate.Location, error)
	Invalidate(ip netip.Addr) error
	LocateHop(ifindex int, hop netip.Addr) (locate.Location, error)
	Link(ifindex int, name string) locate.Link
	Recall(ip netip.Addr, h locate.Held) (locate.Location, error)
	SetPorts(ifindexes []int) error
	VRFs() []int
	Close()
}

// Routes is the part of fib.Watcher that the control loop uses.
type Routes interface {
	Subscribe(netip.Addr)
	Unsubscribe(netip.Addr)
	Route(netip.Addr) (fib.Route, bool)
	Changed() []netip.Addr
	SetVRFs([]int)
}

// A lookup waits for the kernel's locks as long as another process holds them. So a
// separate goroutine does the lookups, and the control loop goes on. A registration
// waits for an answer until locate_timeout, an envelope until parkTTL; a member keeps its
// location.

// lookup is a request for the location of a host, or for the state of ports.
type lookup struct {
	ip    netip.Addr
	held  map[envelope.KeyID]locate.Held // places of the host that have no location
	anew  bool                           // the kernel is to ask all hosts for it
	slots []Port                         // ports by slot; nil: it is about a host
}

// PortStates are the states of the ports' interfaces.
type PortStates struct {
	Ports   []Port        // ports by slot, as they were asked for
	States  []locate.Link // states by slot
	NewVRFs bool          // ports have entered or left VRFs
	Err     error         // why the VRFs could not be read
}

// LookupResult is the locator's answer to a lookup.
type LookupResult struct {
	lookup
	location locate.Location
	recalled map[envelope.KeyID]locate.Location // the locations of the places that were held
	hops     []NextHop                          // the next hops of a host that is behind other switches
	err      error
	ports    *PortStates // nil: it is about a host
}

// Lookups passes lookups to the locator. All methods but Run belong to the control
// loop.
type Lookups struct {
	requests     chan lookup
	results      chan LookupResult // the results, with room for those of all pending lookups
	pendingSince []time.Duration   // the times when lookups without a result were submitted, oldest first
	warnedAt     time.Duration     // the time when the operator was last warned that the kernel is slow
	total        uint64
	routes       Routes                 // nil: no keys of switches are configured
	bySwitch     func(ifindex int) bool // hellos are exchanged at the port with this interface
}

// maxLookups bounds the pending lookups. More would only delay an urgent one.
const maxLookups = 32

// NewLookups makes lookups of hosts.
func NewLookups() *Lookups {
	return &Lookups{requests: make(chan lookup, maxLookups), results: make(chan LookupResult, maxLookups)}
}

// Run does the lookups with l until End.
func (a *Lookups) Run(l Locator) {
	for q := range a.requests {
		x := LookupResult{lookup: q}
		if q.ip.IsValid() {
			for key, held := range q.held {
				if at, err := l.Recall(q.ip, held); err == nil {
					if x.recalled == nil {
						x.recalled = make(map[envelope.KeyID]locate.Location)
					}
					x.recalled[key] = at
				}
			}
			if q.anew {
				_ = l.Invalidate(q.ip) // the answer is that of the lookup then
			}
			x.location, x.hops, x.err = a.locate(l, q.ip)
		}
		if q.slots != nil {
			x.ports = a.lookAtPorts(l, q.slots)
		}
		a.results <- x
	}
}

// lookAtPorts reads the states of the ports' interfaces, and has hosts be looked up in the VRFs of the ports.
func (a *Lookups) lookAtPorts(l Locator, ports []Port) *PortStates {
	var indexes []int
	for _, p := range ports {
		if p.Ifindex != 0 {
			indexes = append(indexes, p.Ifindex)
		}
	}
	was := l.VRFs()
	x := &PortStates{Ports: ports, Err: l.SetPorts(indexes)}
	x.NewVRFs = !slices.Equal(was, l.VRFs())
	if a.routes != nil {
		a.routes.SetVRFs(l.VRFs())
	}
	for _, p := range ports {
		s := locate.Link{}
		if p.Name != "" {
			s = l.Link(p.Ifindex, p.Name)
		}
		x.States = append(x.States, s)
	}
	return x
}

// NextHop is a gateway on the way to a host.
type NextHop struct {
	Gateway netip.Addr
	At      locate.Location
	Err     error // why at is not known; locate.ErrPending: not yet
}

// errRouted is the answer about a host that is behind other switches: it has no location
// at this one.
var errRouted = errors.New("is behind other switches")

// locate looks up a host with l: its location, or the next hops of one that is behind other
// switches.
func (a *Lookups) locate(l Locator, ip netip.Addr) (locate.Location, []NextHop, error) {
	if a.routes == nil {
		at, err := l.Locate(ip)
		return at, nil, err
	}
	r, ok := a.routes.Route(ip)
	switch {
	case !ok || r.Status == fib.Unmatched:
		return locate.Location{}, nil, fmt.Errorf("the route to %s: %w", ip, locate.ErrPending)
	case r.Status != fib.Usable:
		return locate.Location{}, nil, fmt.Errorf("%s %s", ip, r.Status)
	}
	var hops []NextHop
	for _, h := range r.Hops {
		if !h.Gateway.IsValid() {
			continue
		}
		hop := NextHop{Gateway: h.Gateway}
		hop.At, hop.Err = l.LocateHop(h.Link, h.Gateway)
		if hop.Err == nil && !a.bySwitch(hop.At.Ifindex) {
			continue
		}
		hops = append(hops, hop)
	}
	if len(hops) == 0 {
		at, err := l.Locate(ip)
		return at, nil, err
	}
	return locate.Location{}, hops, fmt.Errorf("%s %w", ip, errRouted)
}

// sameHops reports whether two lists of next hops lead to the same places.
func sameHops(a, b []NextHop) bool {
	return slices.EqualFunc(a, b, func(x, y NextHop) bool {
		return x.Gateway == y.Gateway && (x.Err == nil) == (y.Err == nil) && Same(x.At, y.At)
	})
}

// HasRoom reports whether one more lookup may be submitted.
func (a *Lookups) HasRoom() bool { return len(a.pendingSince) < maxLookups }

// submit submits a lookup. The queue must have room.
func (a *Lookups) submit(now time.Duration, q lookup) {
	a.pendingSince = append(a.pendingSince, now)
	a.total++
	a.requests <- q
}

// SubmitPorts submits a lookup of the state of all ports.
func (a *Lookups) SubmitPorts(now time.Duration, all Ports) {
	q := lookup{}
	for i := range all.Len() {
		q.slots = append(q.slots, all.Port(i))
	}
	a.submit(now, q)
}

// SubmitHosts submits the lookups of hosts that are due.
func (a *Lookups) SubmitHosts(now time.Duration, x *Hosts) {
	for a.HasRoom() {
		h := x.nextHost(now)
		if h == nil {
			return
		}
		a.submit(now, lookup{ip: h.ip, held: x.heldPlaces(h), anew: h.reresolve})
		h.reresolve = false
	}
}

// Completed removes the oldest lookup, which has the result r: it gives it to the hosts, or returns the states of
// the ports.
func (a *Lookups) Completed(r *LookupResult, x *Hosts, now time.Duration) *PortStates {
	a.pendingSince = a.pendingSince[1:]
	if h := x.byIP[r.ip]; h != nil && h.lookupPending {
		if !sameHops(h.hops, r.hops) {
			x.OnWays(h)
		}
		x.setHops(h, r.hops)
		for key, at := range r.recalled {
			x.recalled(h, key, at)
		}
		x.Answered(h, r.location, r.err, now)
	}
	return r.ports
}

// Results has the results, each of which is for Completed.
func (a *Lookups) Results() <-chan LookupResult { return a.results }

// End ends Run.
func (a *Lookups) End() { close(a.requests) }

// Total returns the number of lookups so far.
func (a *Lookups) Total() uint64 { return a.total }

// SetRoutes has hosts that are behind other switches looked up by the switch's routes; bySwitch says whether hellos
// are exchanged at the port with an interface.
func (a *Lookups) SetRoutes(r Routes, bySwitch func(ifindex int) bool) {
	a.routes, a.bySwitch = r, bySwitch
}

// slowLookup is the time that a lookup may take before the operator is warned, and
// slowLookupInterval the least time between two warnings.
const (
	slowLookup         = time.Second
	slowLookupInterval = 10 * time.Second
)

// Overdue returns how long the oldest lookup has been pending, and whether to warn of it.
func (a *Lookups) Overdue(now time.Duration) (d time.Duration, tell bool) {
	if len(a.pendingSince) == 0 || now-a.pendingSince[0] < slowLookup || now < a.warnedAt+slowLookupInterval && a.warnedAt > 0 {
		return 0, false
	}
	a.warnedAt = now
	return now - a.pendingSince[0], true
}

// Next returns when Overdue may next ask for a warning; ok is false if no lookup is
// pending.
func (a *Lookups) Next() (at time.Duration, ok bool) {
	if len(a.pendingSince) == 0 {
		return 0, false
	}
	at = a.pendingSince[0] + slowLookup
	if a.warnedAt > 0 {
		at = max(at, a.warnedAt+slowLookupInterval)
	}
	return at, true
}
