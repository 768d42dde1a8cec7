// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/dataplane/locate"
	"github.com/gleam-rdma/gleam/envelope"
)

// host is an address that members have, in one group or in many, and where it is; or
// one that a registration or an envelope is about, a guest.
type host struct {
	ip              netip.Addr
	location        locate.Location // its place; the zero value if there is none
	dependsOn       locate.Location // what the last answer depended on, though it may have been that the place is being resolved
	pinned          locate.Location // the last place that counted, while it is a member; at may have been lost since
	left            locate.Location // the pin that it had when it left its last group
	seenElsewhereAt time.Duration   // when it was seen there
	seenElsewhere   *origin         // elsewhere, the last time that it did not confirm a move
	groups          map[*group]struct{}
	queued          bool          // is among hosts.queue
	urgent          bool          // is among hosts.urgent
	lookupPending   bool          // the locator has the question
	lookupAgain     bool          // something has changed since it was asked
	answered        bool          // there was an answer: err, at the time since
	lookupErr       error         // of the last answer
	answeredAt      time.Duration // when that came
	attempts        int           // without a place
	retryAt         time.Duration // when it is asked for again, if tries > 0
	retryIndex      int           // among hosts.unanswered; -1
	onGuestList     bool          // among hosts.guests
	lastUsed        time.Duration // by a registration or an envelope, the last time

	waitingGroups map[netip.Addr]missingAnswer      // what registrations wait for, by group
	proven        map[envelope.KeyID]provenLocation // where it has confirmed that it is
}

// isMember reports whether a group has h.
func (h *host) isMember() bool { return len(h.groups) > 0 }

// isWanted reports whether a registration or an envelope waits for where h is.
func (h *host) isWanted(now time.Duration) bool { return h.lastUsed > 0 && now-h.lastUsed < wantedTime }

// hosts are all hosts of members, with indexes by what their places depend on, so
// that a change concerns those alone that it is about.
type hosts struct {
	byIP          map[netip.Addr]*host
	byHop         index[netip.Addr]
	byMAC         index[locate.MAC]
	byLink        index[int]
	queue         []*host       // those that a change is about
	urgent        []*host       // those that somebody waits for
	filter        netlinkFilter // nil: all changes are heard of
	filterErr     error         // why changes of some hosts are not
	queueTurn     bool          // of the queue, if there are both
	lookupPolicer policer       // of the queue
	unanswered    retryHeap
	onPinChange   func(*host)        // is told of hosts whose pin may have changed
	unlocated     map[*host]struct{} // without a place
	guests        []guest            // no members, those that expire first at the front
	now           time.Duration      // of the control loop's turn
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
		unlocated: make(map[*host]struct{}), lookupPolicer: newPolicer(maxChangeLookups), onPinChange: func(*host) {},
	}
}

// maxChangeLookups is how many hosts a second are asked for because of changes. A
// question takes the kernel some 50 µs, so that strangers who make it change its mind
// cost a tenth of a CPU, and 10,000 hosts are asked for within 5 s.
const maxChangeLookups = 2000

// Waits between two questions for a host that the kernel cannot resolve. Each
// question makes the kernel send a few requests.
const (
	wantedRetry     = 50 * time.Millisecond // while somebody waits for the answer, the first time
	wantedDoublings = 3                     // of it; the kernel tells of an answer by itself
	wantedTime      = time.Second           // after a registration or an envelope has asked last
	firstRetry      = time.Second
	lastRetry       = 32 * time.Second
)

// setMembers makes the hosts of g those of its slots: to be called when members have
// come or gone. Their places are those of the slots.
func (x *hosts) setMembers(g *group, slots []slot) {
	now := make(map[netip.Addr]int, len(slots))
	for i := range slots {
		if s := &slots[i]; !s.gone {
			now[s.record.IP] = i
			x.addMember(g, s)
		}
	}
	for ip := range g.hosts {
		if _, ok := now[ip]; !ok {
			x.removeMember(g, ip)
		}
	}
	g.hosts = now
}

func (x *hosts) addMember(g *group, s *slot) {
	h := x.byIP[s.record.IP]
	if h == nil {
		h = x.add(s.record.IP)
		x.setLocation(h, s.location)
	}
	if len(h.groups) == 0 {
		h.groups[g] = struct{}{}
		h.pinned, h.left = s.location, locate.Location{}
		if !sameLocation(h.location, s.location) { // it has confirmed another one than the kernel's
			x.setLocation(h, s.location)
		}
		x.onPinChange(h)
	}
	h.groups[g] = struct{}{}
}

func (x *hosts) add(ip netip.Addr) *host {
	h := &host{ip: ip, retryIndex: -1, groups: make(map[*group]struct{}), waitingGroups: make(map[netip.Addr]missingAnswer), proven: make(map[envelope.KeyID]provenLocation)}
	x.byIP[ip] = h
	return h
}

// removeMember makes a host that is in no other group a guest: those who have gone are told
// so, where they are.
func (x *hosts) removeMember(g *group, ip netip.Addr) {
	h := x.byIP[ip]
	if delete(h.groups, g); !h.isMember() {
		h.lastUsed = x.now
		x.listGuest(h, x.now)
		h.left = h.pinned
		h.pinned, h.seenElsewhere = locate.Location{}, nil
		x.onPinChange(h)
	}
}

func (x *hosts) forget(h *host) {
	x.setDependencies(h, locate.Location{}, locate.Location{})
	delete(x.byIP, h.ip)
	x.unanswered.remove(h)
	delete(x.unlocated, h)
}

// setLocation notes where h is; the zero Location: nowhere.
func (x *hosts) setLocation(h *host, at locate.Location) {
	x.setDependencies(h, at, at)
	h.attempts = 0
	x.unanswered.remove(h)
	if delete(x.unlocated, h); at.Ifindex == 0 {
		x.unlocated[h] = struct{}{}
	}
}

// scheduleRetry notes that the kernel resolves h, with what is known until then.
func (x *hosts) scheduleRetry(h *host, known locate.Location, now time.Duration) {
	x.setDependencies(h, h.location, known)
	h.retryAt = now + min(firstRetry<<min(h.attempts, 5), lastRetry)
	if h.isWanted(now) {
		h.retryAt = now + wantedRetry<<min(h.attempts, wantedDoublings)
	}
	h.attempts++
	x.unanswered.put(h)
}

// enqueue puts h into the queue.
func (x *hosts) enqueue(h *host) {
	switch {
	case h.lookupPending:
		h.lookupAgain = true // the answer may be older than the reason to ask
	case h.isWanted(x.now):
		x.enqueueUrgent(h)
	case !h.queued:
		h.queued = true
		x.queue = append(x.queue, h)
	}
}

// enqueueUrgent has h asked for before those of the queue.
func (x *hosts) enqueueUrgent(h *host) {
	if !h.lookupPending && !h.urgent {
		h.urgent = true
		x.urgent = append(x.urgent, h)
	}
}

// nextHost returns the next host to ask for; nil if there is none that may be asked for
// now. Urgent ones and those of the queue take turns.
func (x *hosts) nextHost(now time.Duration) *host {
	for {
		queue := len(x.queue) > 0 && x.lookupPolicer.waitFor(now) == 0
		var h *host
		switch {
		case len(x.urgent) > 0 && !(queue && x.queueTurn):
			h, x.urgent, x.queueTurn = x.urgent[0], x.urgent[1:], true
			h.urgent = false
		case queue:
			h, x.queue, x.queueTurn = x.queue[0], x.queue[1:], false
			if !h.queued {
				continue // asked for meanwhile
			}
			x.lookupPolicer.allow(now)
		default:
			return nil
		}
		if x.byIP[h.ip] == h && !h.lookupPending { // neither forgotten nor asked for
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

// applyChanges puts those hosts into the queue that the changes are about. That the
// kernel resolves a host, or fails to, is no news of its place: else each question
// would bring the next one.
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

// retryLater has h asked for after a while, if it is not going to be.
func (x *hosts) retryLater(h *host, now time.Duration) {
	if h.attempts == 0 {
		x.scheduleRetry(h, h.dependsOn, now)
	}
}

// enqueueRetries puts those into the queue whose time has come.
func (x *hosts) enqueueRetries(now time.Duration) {
	for len(x.unanswered) > 0 && x.unanswered[0].retryAt <= now {
		h := x.unanswered[0]
		x.unanswered.remove(h) // until there is an answer
		x.enqueue(h)
	}
}

// next says when there is something to do: to retry, to take or to expire.
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
		earlier(now + x.lookupPolicer.waitFor(now))
	}
	if len(x.guests) > 0 {
		earlier(x.guests[0].until)
	}
	return at, ok
}
