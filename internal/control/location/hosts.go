// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"iter"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// Hosts is the set of all hosts, with indexes by the dependencies of their locations, so
// that a change costs lookups only of the hosts that it affects.
type Hosts struct {
	byIP          map[netip.Addr]*Host
	byHop         index[netip.Addr]
	byMAC         index[locate.MAC]
	byLink        index[int]
	queue         []*Host           // hosts that a change affects
	urgent        []*Host           // hosts that a registration or an envelope waits for
	routes        Routes            // nil: no keys of switches are configured
	filter        netlinkFilter     // nil: all changes are reported
	filterErr     error             // why changes that affect some hosts are not reported
	queueTurn     bool              // the next lookup is of queue, if both lists have hosts
	lookupPolicer dataplane.Policer // limits lookups from queue
	unanswered    retryHeap
	ports         Ports
	kernelDecides bool                        // the kernel's tables decide where members are (unconfirmed_moves: follow)
	unlocated     map[*Host]struct{}          // hosts without a location, or without one in the groups of a key
	former        map[netip.Addr][]netip.Addr // hosts that have left their last group, by that, until the file is told
	guests        []guest                     // hosts that are not members; the next one to expire is first
	notify        dataplane.Notify
	now           time.Duration // the time of the control loop's iteration

	OnLocated   func(group netip.Addr)                                         // called when an answer has come that a registration of a group waits for
	OnMoved     func(group netip.Addr, h *Host, at locate.Location, err error) // called when a member may have another location, or none because of err
	OnPlaced    func(*Host)                                                    // called when the places of a host may have changed
	OnWays      func(*Host)                                                    // called when the next hops to a host are about to change
	onAnswer    func(*Host)                                                    // called when the kernel has a host elsewhere than before
	onPinChange func(*Host)                                                    // called with hosts whose pin may have changed
	onSuspect   func(*Host, locate.Location)                                   // called with a location by the kernel that differs from the member's
}

// index finds hosts by a key.
type index[K comparable] map[K]map[*Host]struct{}

// add reports whether h is the first host of k.
func (x index[K]) add(k K, h *Host) (first bool) {
	if first = x[k] == nil; first {
		x[k] = make(map[*Host]struct{})
	}
	x[k][h] = struct{}{}
	return first
}

// remove reports whether h was the last host of k.
func (x index[K]) remove(k K, h *Host) (last bool) {
	delete(x[k], h)
	if last = len(x[k]) == 0; last {
		delete(x, k)
	}
	return last
}

// NewHosts returns an empty set.
func NewHosts(ports Ports, notify dataplane.Notify) *Hosts {
	return &Hosts{
		ports: ports, notify: notify,
		byIP: make(map[netip.Addr]*Host), byHop: make(index[netip.Addr]), byMAC: make(index[locate.MAC]), byLink: make(index[int]),
		former: make(map[netip.Addr][]netip.Addr), unlocated: make(map[*Host]struct{}), lookupPolicer: dataplane.NewPolicer(maxChangeLookups),
		onPinChange: func(*Host) {}, OnPlaced: func(*Host) {}, onAnswer: func(*Host) {}, onSuspect: func(*Host, locate.Location) {},
		OnLocated: func(netip.Addr) {}, OnMoved: func(netip.Addr, *Host, locate.Location, error) {}, OnWays: func(*Host) {},
	}
}

// Of returns the host of an address, or nil.
func (x *Hosts) Of(ip netip.Addr) *Host { return x.byIP[ip] }

// Len returns the number of hosts, All all of them.
func (x *Hosts) Len() int             { return len(x.byIP) }
func (x *Hosts) All() iter.Seq[*Host] { return maps.Values(x.byIP) }

// FollowKernel says whether the kernel's tables decide where members are (unconfirmed_moves: follow).
func (x *Hosts) FollowKernel(is bool) { x.kernelDecides = is }

// SetFilter has the kernel report the changes that affect hosts, and no others.
func (x *Hosts) SetFilter(f netlinkFilter) { x.filter = f }

// FilterErr returns why changes that affect some hosts are not reported.
func (x *Hosts) FilterErr() error { return x.filterErr }

// SetRoutes has the routes to hosts watched.
func (x *Hosts) SetRoutes(r Routes) { x.routes = r }

// FollowRoutes queues the lookups of the hosts whose routes have changed.
func (x *Hosts) FollowRoutes() {
	for _, ip := range x.routes.Changed() {
		if h := x.byIP[ip]; h != nil {
			x.LookUp(h)
		}
	}
}

// Behind returns the hosts whose locations depend on an interface.
func (x *Hosts) Behind(ifindex int) iter.Seq[*Host] { return maps.Keys(x.byLink[ifindex]) }

// MembersAt returns the hosts that are members at an interface.
func (x *Hosts) MembersAt(ifindex int) map[*Host]struct{} {
	hs := make(map[*Host]struct{})
	for _, list := range []map[*Host]struct{}{x.byLink[ifindex], x.unlocated} {
		for h := range list {
			if h.IsMember() && h.isAt(ifindex) {
				hs[h] = struct{}{}
			}
		}
	}
	return hs
}

// LookUpLost has the hosts looked up that have no location, or none in the groups of a key.
func (x *Hosts) LookUpLost() { x.LookUpAll(x.unlocated) }

// maxChangeLookups bounds the hosts that are looked up per second because of changes. A
// lookup takes the kernel some 50 µs, so strangers who cause changes cost a tenth of a
// CPU, and 10,000 hosts are looked up within 5 s.
const maxChangeLookups = 2000

// Intervals between two lookups of a host that the kernel cannot resolve. Each lookup
// makes the kernel send a few requests.
const (
	wantedRetry     = 50 * time.Millisecond // the first interval while the location is wanted
	wantedDoublings = 3                     // doublings of wantedRetry; the kernel reports an answer by itself
	wantedTime      = time.Second           // the time after the last use by a registration or an envelope
	firstRetry      = time.Second
	lastRetry       = 32 * time.Second
)

// Join makes a host a member of a group under a key, at a location; or only puts it there, if it is
// one. elsewhere says that the other groups of the key have it at another location.
func (x *Hosts) Join(group netip.Addr, key envelope.KeyID, ip netip.Addr, at locate.Location) (h *Host, elsewhere bool) {
	h = x.byIP[ip]
	if h == nil {
		h = x.add(ip)
		x.setLocation(h, at)
	}
	first := len(h.groups) == 0
	p := h.placeIn(key)
	if _, had := h.groups[group.As16()]; !had {
		h.groups[group.As16()] = key
		delete(h.left, key)
		p.groups++
	}
	if at.Known() && !Same(p.at, at) {
		elsewhere = p.groups > 1
		x.setPlace(h, p, at)
	}
	if first || !h.pinned.Known() {
		if !h.pinned.Known() { // else it is known from before a restart
			h.pinned = at
		}
		if !Same(h.location, h.pinned) { // the host has confirmed a location that is not the kernel's
			x.setLocation(h, h.pinned)
		}
		x.noteUnlocated(h)
		x.onPinChange(h)
	}
	return h, elsewhere
}

func (x *Hosts) add(ip netip.Addr) *Host {
	h := &Host{ip: ip, retryIndex: -1, groups: make(map[address]envelope.KeyID), places: make(map[envelope.KeyID]*place), left: make(map[envelope.KeyID]leftPlace), waitingGroups: make(map[netip.Addr]Missing), proven: make(map[envelope.KeyID]provenLocation)}
	x.byIP[ip] = h
	if x.routes != nil {
		x.routes.Subscribe(ip)
	}
	return h
}

// Leave ends the membership of a host in a group. A host that is in no other group becomes a guest:
// former members still get envelopes at their locations.
func (x *Hosts) Leave(group, ip netip.Addr) {
	h := x.byIP[ip]
	key := h.groups[group.As16()]
	delete(h.groups, group.As16())
	if p := h.places[key]; p.groups > 1 {
		p.groups--
	} else {
		h.left[key] = leftPlace{p.at, x.now}
		x.removePlace(h, key)
	}
	if !h.IsMember() {
		x.former[group] = append(x.former[group], ip)
	}
	if !h.isPinned() {
		x.unpin(h)
	}
}

// TakeFormer returns the hosts that were members of a group, and are of none now.
func (x *Hosts) TakeFormer(group netip.Addr) []netip.Addr {
	list := slices.DeleteFunc(x.former[group], func(ip netip.Addr) bool {
		h := x.byIP[ip]
		return h != nil && h.IsMember()
	})
	delete(x.former, group)
	return list
}

// unpin makes h, which is in no group and has no connections, a guest.
func (x *Hosts) unpin(h *Host) {
	h.lastUsed = x.now
	x.listGuest(h, x.now)
	h.pinned, h.seenElsewhere = locate.Location{}, nil
	x.onPinChange(h)
}

// SetConnected records whether a host has connections by RDMA-CM.
func (x *Hosts) SetConnected(ip netip.Addr, is bool) {
	h := x.byIP[ip]
	if h == nil && is {
		h = x.add(ip)
		x.unlocated[h] = struct{}{}
		x.enqueueUrgent(h)
	}
	if h == nil || h.connected == is {
		return
	}
	was := h.isPinned()
	h.connected = is
	switch {
	case was == h.isPinned():
	case was:
		x.unpin(h)
	default:
		h.pinned = h.location
		x.onPinChange(h)
	}
}

func (x *Hosts) forget(h *Host) {
	was := h.dependencies()
	h.hops = nil
	clear(h.places)
	x.changeDependencies(h, was)
	x.setDependencies(h, locate.Location{}, locate.Location{})
	delete(x.byIP, h.ip)
	if x.routes != nil {
		x.routes.Unsubscribe(h.ip)
	}
	x.unanswered.remove(h)
	delete(x.unlocated, h)
}

// setLocation records the location of h; the zero Location means none.
func (x *Hosts) setLocation(h *Host, at locate.Location) {
	x.setDependencies(h, at, at)
	h.attempts = 0
	x.unanswered.remove(h)
	x.noteUnlocated(h)
}

// scheduleRetry records that the kernel is resolving h; known holds the dependencies
// known so far.
func (x *Hosts) scheduleRetry(h *Host, known locate.Location, now time.Duration) {
	x.setDependencies(h, h.location, known)
	h.retryAt = now + min(firstRetry<<min(h.attempts, 5), lastRetry)
	if h.isWanted(now) {
		h.retryAt = now + wantedRetry<<min(h.attempts, wantedDoublings)
	}
	h.attempts++
	x.unanswered.put(h)
}

// LookUp puts h into the queue, or among the urgent hosts if its location is wanted.
func (x *Hosts) LookUp(h *Host) {
	switch {
	case h.lookupPending:
		h.lookupAgain = true // the pending answer may be older than the reason for this lookup
	case h.isWanted(x.now):
		x.enqueueUrgent(h)
	case !h.queued:
		h.queued = true
		x.queue = append(x.queue, h)
	}
}

// enqueueUrgent makes the lookup of h precede those of the queue.
func (x *Hosts) enqueueUrgent(h *Host) {
	if !h.lookupPending && !h.urgent {
		h.urgent = true
		x.urgent = append(x.urgent, h)
	}
}

// nextHost returns the next host to look up, or nil if no lookup is allowed now. Urgent
// hosts and those of the queue alternate.
func (x *Hosts) nextHost(now time.Duration) *Host {
	for {
		queue := len(x.queue) > 0 && x.lookupPolicer.WaitFor(now) == 0
		var h *Host
		switch {
		case len(x.urgent) > 0 && !(queue && x.queueTurn):
			h, x.urgent, x.queueTurn = x.urgent[0], x.urgent[1:], true
			h.urgent = false
		case queue:
			h, x.queue, x.queueTurn = x.queue[0], x.queue[1:], false
			if !h.queued {
				continue // looked up since, as an urgent host
			}
			x.lookupPolicer.Allow(now)
		default:
			return nil
		}
		if x.byIP[h.ip] == h && !h.lookupPending { // neither forgotten nor being looked up
			h.queued, h.lookupPending = false, true
			return h
		}
	}
}

// LookUpAll is LookUp for several hosts.
func (x *Hosts) LookUpAll(hs map[*Host]struct{}) {
	for h := range hs {
		x.LookUp(h)
	}
}

// Apply puts the hosts that the changes affect into the queue. A report that the
// kernel is resolving a host, or has failed to, says nothing new of its location; a
// lookup for it would cause the next report.
func (x *Hosts) Apply(s *locate.Set, now time.Duration) {
	if s.All {
		for _, h := range x.byIP {
			x.LookUp(h)
		}
		return
	}
	for ip, n := range s.Neighbours {
		for h := range x.byHop[ip] {
			switch {
			case !n.Usable:
				x.retryLater(h, now)
			case len(h.dependsOn.MAC) == 0 || n.MAC != locate.MAC(h.dependsOn.MAC):
				x.LookUp(h)
			}
		}
	}
	for mac, learnt := range s.Learnt {
		for h := range x.byMAC[mac] {
			if learnt {
				x.LookUp(h)
			} else {
				x.retryLater(h, now)
			}
		}
	}
	for i := range s.Links {
		x.LookUpAll(x.byLink[i])
	}
	for p := range s.Routes {
		if p.IsSingleIP() {
			if h := x.byIP[p.Addr()]; h != nil {
				x.LookUp(h)
			}
			continue
		}
		for ip, h := range x.byIP { // compares addresses only
			if p.Contains(ip) {
				x.LookUp(h)
			}
		}
	}
	if len(s.Links)+len(s.Routes) > 0 {
		x.LookUpAll(x.unlocated)
	}
}

// retryLater schedules a lookup of h, unless one is scheduled.
func (x *Hosts) retryLater(h *Host, now time.Duration) {
	if h.attempts == 0 {
		x.scheduleRetry(h, h.dependsOn, now)
	}
}

// Retry puts the hosts whose retries are due into the queue.
func (x *Hosts) Retry(now time.Duration) {
	for len(x.unanswered) > 0 && x.unanswered[0].retryAt <= now {
		h := x.unanswered[0]
		x.unanswered.remove(h) // until there is an answer
		x.LookUp(h)
	}
}

// Next returns when a lookup, a retry or an expiry is due; ok is false if none will be.
func (x *Hosts) Next(now time.Duration) (at time.Duration, ok bool) {
	earlier := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	if len(x.unanswered) > 0 {
		earlier(x.unanswered[0].retryAt)
	}
	if len(x.urgent) > 0 {
		earlier(now)
	}
	if len(x.queue) > 0 {
		earlier(now + x.lookupPolicer.WaitFor(now))
	}
	if len(x.guests) > 0 {
		earlier(x.guests[0].until)
	}
	return at, ok
}
