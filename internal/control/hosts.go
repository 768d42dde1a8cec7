// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
)

// host is an address that members have in one or many groups, with its location; or an
// address that a registration or an envelope is about, a guest.
type host struct {
	ip              netip.Addr
	location        locate.Location   // the zero value if there is none
	answer          locate.Location   // the location by the kernel's last answer, whether or not h is taken to be there
	dependsOn       locate.Location   // dependencies of the last answer, which may have been that the host is being resolved
	pinned          locate.Location   // the last valid location while it is a member, or has connections; location may have been lost since
	connected       bool              // true: it has connections by RDMA-CM
	seenElsewhereAt time.Duration     // the time when seenElsewhere was recorded
	seenElsewhere   *dataplane.Origin // the last origin other than its location that it did not confirm a move to
	hops            []nextHop         // the next hops on the way to it, if it is behind other switches
	groups          map[*group]struct{}
	places          map[envelope.KeyID]*place    // places by the keys of groups
	left            map[envelope.KeyID]leftPlace // places by the keys of groups that it has left, and of no others
	routed          map[*group]struct{}          // groups that have it below, behind another switch
	queued          bool                         // true: it is in hosts.queue
	urgent          bool                         // true: it is in hosts.urgent
	lookupPending   bool                         // a lookup has been submitted
	lookupAgain     bool                         // something has changed since the lookup was submitted
	reresolve       bool                         // the next lookup has the kernel ask all hosts for it
	reresolvedAt    time.Duration                // the time when the last such lookup was wanted
	answered        bool                         // true: there was an answer: lookupErr, at time answeredAt
	lookupErr       error                        // the error of the last answer
	answeredAt      time.Duration                // the time when that answer came
	attempts        int                          // lookups in sequence without a location
	retryAt         time.Duration                // the time when the lookup is repeated, if attempts > 0
	retryIndex      int                          // index in hosts.unanswered, or -1
	onGuestList     bool                         // true: it is in hosts.guests
	lastUsed        time.Duration                // last use by a registration or an envelope

	waitingGroups map[netip.Addr]missingAnswer      // the answers that registrations wait for, by group
	proven        map[envelope.KeyID]provenLocation // the location that it has confirmed, by key
}

// isMember reports whether h is a member of a group.
func (h *host) isMember() bool { return len(h.groups) > 0 }

// isPinned reports whether h keeps the location that it has, whatever strangers' frames say.
func (h *host) isPinned() bool { return h.isMember() || h.connected }

// isWanted reports whether a registration or an envelope waits for the location of h.
func (h *host) isWanted(now time.Duration) bool { return h.lastUsed > 0 && now-h.lastUsed < wantedTime }

// hosts is the set of all hosts, with indexes by the dependencies of their locations, so
// that a change costs lookups only of the hosts that it affects.
type hosts struct {
	byIP          map[netip.Addr]*host
	byHop         index[netip.Addr]
	byMAC         index[locate.MAC]
	byLink        index[int]
	queue         []*host           // hosts that a change affects
	urgent        []*host           // hosts that a registration or an envelope waits for
	routes        routes            // nil: no keys of switches are configured
	filter        netlinkFilter     // nil: all changes are reported
	filterErr     error             // why changes that affect some hosts are not reported
	queueTurn     bool              // the next lookup is of queue, if both lists have hosts
	lookupPolicer dataplane.Policer // limits lookups from queue
	unanswered    retryHeap
	onPinChange   func(*host)        // called with hosts whose pin may have changed
	unlocated     map[*host]struct{} // hosts without a location, or without one in the groups of a key
	heldAt        func(*locate.Location) statefile.Location
	former        map[netip.Addr][]netip.Addr // hosts that have left their last group, by that, until the file is told
	guests        []guest                     // hosts that are not members; the next one to expire is first
	now           time.Duration               // the time of the control loop's iteration
}

// index finds hosts by a key.
type index[K comparable] map[K]map[*host]struct{}

// add reports whether h is the first host of k.
func (x index[K]) add(k K, h *host) (first bool) {
	if first = x[k] == nil; first {
		x[k] = make(map[*host]struct{})
	}
	x[k][h] = struct{}{}
	return first
}

// remove reports whether h was the last host of k.
func (x index[K]) remove(k K, h *host) (last bool) {
	delete(x[k], h)
	if last = len(x[k]) == 0; last {
		delete(x, k)
	}
	return last
}

func newHosts() *hosts {
	return &hosts{
		byIP: make(map[netip.Addr]*host), byHop: make(index[netip.Addr]), byMAC: make(index[locate.MAC]), byLink: make(index[int]),
		former: make(map[netip.Addr][]netip.Addr), unlocated: make(map[*host]struct{}), lookupPolicer: dataplane.NewPolicer(maxChangeLookups), onPinChange: func(*host) {},
		heldAt: func(*locate.Location) statefile.Location { return statefile.Location{} },
	}
}

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

// setMembers makes the hosts of g those of its slots, with the slots' locations. It must
// be called when members have joined or gone. It returns the hosts that are elsewhere now than the
// other groups of g's key have them.
func (x *hosts) setMembers(g *group, slots []slot) (moved []*host) {
	now := make(map[netip.Addr]int, len(slots))
	for i := range slots {
		if s := &slots[i]; !s.gone && s.isHere() {
			now[s.record.IP] = i
			if h, elsewhere := x.addMember(g, s); elsewhere {
				moved = append(moved, h)
			}
		}
	}
	for ip := range g.hosts {
		if _, ok := now[ip]; !ok {
			x.removeMember(g, ip)
		}
	}
	g.hosts = now
	return moved
}

func (x *hosts) addMember(g *group, s *slot) (h *host, elsewhere bool) {
	h = x.byIP[s.record.IP]
	if h == nil {
		h = x.add(s.record.IP)
		x.setLocation(h, s.location)
	}
	first := len(h.groups) == 0
	p := h.placeIn(g.key)
	if _, had := h.groups[g]; !had {
		h.groups[g] = struct{}{}
		delete(h.left, g.key)
		p.groups++
	}
	if s.location.Known() && !sameLocation(p.at, s.location) {
		elsewhere = p.groups > 1
		x.setPlace(h, p, s.location)
	}
	if first || !h.pinned.Known() {
		if !h.pinned.Known() { // else it is known from before a restart
			h.pinned = s.location
		}
		if !sameLocation(h.location, h.pinned) { // the host has confirmed a location that is not the kernel's
			x.setLocation(h, h.pinned)
		}
		x.noteUnlocated(h)
		x.onPinChange(h)
	}
	return h, elsewhere
}

func (x *hosts) add(ip netip.Addr) *host {
	h := &host{ip: ip, retryIndex: -1, groups: make(map[*group]struct{}), places: make(map[envelope.KeyID]*place), left: make(map[envelope.KeyID]leftPlace), waitingGroups: make(map[netip.Addr]missingAnswer), proven: make(map[envelope.KeyID]provenLocation)}
	x.byIP[ip] = h
	if x.routes != nil {
		x.routes.Subscribe(ip)
	}
	return h
}

// removeMember removes g from a host. A host that is in no other group becomes a guest:
// former members still get envelopes at their locations.
func (x *hosts) removeMember(g *group, ip netip.Addr) {
	h := x.byIP[ip]
	delete(h.groups, g)
	if p := h.places[g.key]; p.groups > 1 {
		p.groups--
	} else {
		h.left[g.key] = leftPlace{p.at, x.now}
		x.removePlace(h, g.key)
	}
	if !h.isMember() {
		x.former[g.reg.Group] = append(x.former[g.reg.Group], ip)
	}
	if !h.isPinned() {
		x.unpin(h)
	}
}

// takeFormer returns the hosts that were members of a group, and are of none now.
func (x *hosts) takeFormer(group netip.Addr) []netip.Addr {
	list := slices.DeleteFunc(x.former[group], func(ip netip.Addr) bool {
		h := x.byIP[ip]
		return h != nil && h.isMember()
	})
	delete(x.former, group)
	return list
}

// unpin makes h, which is in no group and has no connections, a guest.
func (x *hosts) unpin(h *host) {
	h.lastUsed = x.now
	x.listGuest(h, x.now)
	h.pinned, h.seenElsewhere = locate.Location{}, nil
	x.onPinChange(h)
}

// setConnected records whether a host has connections by RDMA-CM.
func (x *hosts) setConnected(ip netip.Addr, is bool) {
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

// slotGone removes g from the host of its slot i, whose member has gone.
func (x *hosts) slotGone(g *group, i int) {
	ip := g.slots[i].record.IP
	if at, in := g.hosts[ip]; in && at == i {
		delete(g.hosts, ip)
		x.removeMember(g, ip)
	}
}

func (x *hosts) forget(h *host) {
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
func (x *hosts) setLocation(h *host, at locate.Location) {
	x.setDependencies(h, at, at)
	h.attempts = 0
	x.unanswered.remove(h)
	x.noteUnlocated(h)
}

// scheduleRetry records that the kernel is resolving h; known holds the dependencies
// known so far.
func (x *hosts) scheduleRetry(h *host, known locate.Location, now time.Duration) {
	x.setDependencies(h, h.location, known)
	h.retryAt = now + min(firstRetry<<min(h.attempts, 5), lastRetry)
	if h.isWanted(now) {
		h.retryAt = now + wantedRetry<<min(h.attempts, wantedDoublings)
	}
	h.attempts++
	x.unanswered.put(h)
}

// enqueue puts h into the queue, or among the urgent hosts if its location is wanted.
func (x *hosts) enqueue(h *host) {
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
func (x *hosts) enqueueUrgent(h *host) {
	if !h.lookupPending && !h.urgent {
		h.urgent = true
		x.urgent = append(x.urgent, h)
	}
}

// nextHost returns the next host to look up, or nil if no lookup is allowed now. Urgent
// hosts and those of the queue alternate.
func (x *hosts) nextHost(now time.Duration) *host {
	for {
		queue := len(x.queue) > 0 && x.lookupPolicer.WaitFor(now) == 0
		var h *host
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

func (x *hosts) enqueueAll(hs map[*host]struct{}) {
	for h := range hs {
		x.enqueue(h)
	}
}

// applyChanges puts the hosts that the changes affect into the queue. A report that the
// kernel is resolving a host, or has failed to, says nothing new of its location; a
// lookup for it would cause the next report.
func (x *hosts) applyChanges(s *locate.Set, now time.Duration) {
	if s.All {
		for _, h := range x.byIP {
			x.enqueue(h)
		}
		return
	}
	for ip, n := range s.Neighbours {
		for h := range x.byHop[ip] {
			switch {
			case !n.Usable:
				x.retryLater(h, now)
			case len(h.dependsOn.MAC) == 0 || n.MAC != locate.MAC(h.dependsOn.MAC):
				x.enqueue(h)
			}
		}
	}
	for mac, learnt := range s.Learnt {
		for h := range x.byMAC[mac] {
			if learnt {
				x.enqueue(h)
			} else {
				x.retryLater(h, now)
			}
		}
	}
	for i := range s.Links {
		x.enqueueAll(x.byLink[i])
	}
	for p := range s.Routes {
		if p.IsSingleIP() {
			if h := x.byIP[p.Addr()]; h != nil {
				x.enqueue(h)
			}
			continue
		}
		for ip, h := range x.byIP { // compares addresses only
			if p.Contains(ip) {
				x.enqueue(h)
			}
		}
	}
	if len(s.Links)+len(s.Routes) > 0 {
		x.enqueueAll(x.unlocated)
	}
}

// retryLater schedules a lookup of h, unless one is scheduled.
func (x *hosts) retryLater(h *host, now time.Duration) {
	if h.attempts == 0 {
		x.scheduleRetry(h, h.dependsOn, now)
	}
}

// enqueueRetries puts the hosts whose retries are due into the queue.
func (x *hosts) enqueueRetries(now time.Duration) {
	for len(x.unanswered) > 0 && x.unanswered[0].retryAt <= now {
		h := x.unanswered[0]
		x.unanswered.remove(h) // until there is an answer
		x.enqueue(h)
	}
}

// next returns when a lookup, a retry or an expiry is due; ok is false if none will be.
func (x *hosts) next(now time.Duration) (at time.Duration, ok bool) {
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
