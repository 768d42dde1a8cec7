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
	ip     netip.Addr
	at     locate.Location // its place; the zero value if there is none
	known  locate.Location // what the last answer depended on, though it may have been that the place is being resolved
	pin    locate.Location // the last place that counted, while it is a member; at may have been lost since
	left   locate.Location // the pin that it had when it left its last group
	seenAt time.Duration   // when it was seen there
	seen   *spot           // elsewhere, the last time that it did not confirm a move
	groups map[*group]struct{}
	due    bool          // is among hosts.queue
	first  bool          // is among hosts.urgent
	asked  bool          // the locator has the question
	again  bool          // something has changed since it was asked
	heard  bool          // there was an answer: err, at the time since
	err    error         // of the last answer
	since  time.Duration // when that came
	tries  int           // without a place
	retry  time.Duration // when it is asked for again, if tries > 0
	index  int           // among hosts.unanswered; -1
	listed bool          // among hosts.guests
	used   time.Duration // by a registration or an envelope, the last time

	waiting map[netip.Addr]lack       // what registrations wait for, by group
	proven  map[envelope.KeyID]proven // where it has confirmed that it is
}

// member reports whether a group has h.
func (h *host) member() bool { return len(h.groups) > 0 }

// wanted reports whether a registration or an envelope waits for where h is.
func (h *host) wanted(now time.Duration) bool { return h.used > 0 && now-h.used < wantedTime }

// hosts are all hosts of members, with indexes by what their places depend on, so
// that a change concerns those alone that it is about.
type hosts struct {
	byIP       map[netip.Addr]*host
	byHop      index[netip.Addr]
	byMAC      index[locate.MAC]
	byLink     index[int]
	queue      []*host // those that a change is about
	urgent     []*host // those that somebody waits for
	hearer     hearer  // nil: all changes are heard of
	deaf       error   // why changes of some hosts are not
	turn       bool    // of the queue, if there are both
	pace       bucket  // of the queue
	unanswered retries
	pinned     func(*host)        // is told of hosts whose pin may have changed
	lost       map[*host]struct{} // without a place
	guests     []guest            // no members, those that expire first at the front
	now        time.Duration      // of the control loop's turn
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
		lost: make(map[*host]struct{}), pace: newBucket(relocationRate), pinned: func(*host) {},
	}
}

// relocationRate is how many hosts a second are asked for because of changes. A
// question takes the kernel some 50 µs, so that strangers who make it change its mind
// cost a tenth of a CPU, and 10,000 hosts are asked for within 5 s.
const relocationRate = 2000

// Waits between two questions for a host that the kernel cannot resolve. Each
// question makes the kernel send a few requests.
const (
	wantedRetry     = 50 * time.Millisecond // while somebody waits for the answer, the first time
	wantedDoublings = 3                     // of it; the kernel tells of an answer by itself
	wantedTime      = time.Second           // after a registration or an envelope has asked last
	firstRetry      = time.Second
	lastRetry       = 32 * time.Second
)

// follow makes the hosts of g those of its slots: to be called when members have
// come or gone. Their places are those of the slots.
func (x *hosts) follow(g *group, slots []slot) {
	now := make(map[netip.Addr]int, len(slots))
	for i := range slots {
		if s := &slots[i]; !s.gone {
			now[s.rec.IP] = i
			x.join(g, s)
		}
	}
	for ip := range g.hosts {
		if _, ok := now[ip]; !ok {
			x.leave(g, ip)
		}
	}
	g.hosts = now
}

func (x *hosts) join(g *group, s *slot) {
	h := x.byIP[s.rec.IP]
	if h == nil {
		h = x.add(s.rec.IP)
		x.place(h, s.place)
	}
	if len(h.groups) == 0 {
		h.groups[g] = struct{}{}
		h.pin, h.left = s.place, locate.Location{}
		if !samePlace(h.at, s.place) { // it has confirmed another one than the kernel's
			x.place(h, s.place)
		}
		x.pinned(h)
	}
	h.groups[g] = struct{}{}
}

func (x *hosts) add(ip netip.Addr) *host {
	h := &host{ip: ip, index: -1, groups: make(map[*group]struct{}), waiting: make(map[netip.Addr]lack), proven: make(map[envelope.KeyID]proven)}
	x.byIP[ip] = h
	return h
}

// leave makes a host that is in no other group a guest: those who have gone are told
// so, where they are.
func (x *hosts) leave(g *group, ip netip.Addr) {
	h := x.byIP[ip]
	if delete(h.groups, g); !h.member() {
		h.used = x.now
		x.list(h, x.now)
		h.left = h.pin
		h.pin, h.seen = locate.Location{}, nil
		x.pinned(h)
	}
}

func (x *hosts) forget(h *host) {
	x.depend(h, locate.Location{}, locate.Location{})
	delete(x.byIP, h.ip)
	x.unanswered.remove(h)
	delete(x.lost, h)
}

// place notes where h is; the zero Location: nowhere.
func (x *hosts) place(h *host, at locate.Location) {
	x.depend(h, at, at)
	h.tries = 0
	x.unanswered.remove(h)
	if delete(x.lost, h); at.Ifindex == 0 {
		x.lost[h] = struct{}{}
	}
}

// wait notes that the kernel resolves h, with what is known until then.
func (x *hosts) wait(h *host, known locate.Location, now time.Duration) {
	x.depend(h, h.at, known)
	h.retry = now + min(firstRetry<<min(h.tries, 5), lastRetry)
	if h.wanted(now) {
		h.retry = now + wantedRetry<<min(h.tries, wantedDoublings)
	}
	h.tries++
	x.unanswered.put(h)
}

// ask puts h into the queue.
func (x *hosts) ask(h *host) {
	switch {
	case h.asked:
		h.again = true // the answer may be older than the reason to ask
	case h.wanted(x.now):
		x.urge(h)
	case !h.due:
		h.due = true
		x.queue = append(x.queue, h)
	}
}

// urge has h asked for before those of the queue.
func (x *hosts) urge(h *host) {
	if !h.asked && !h.first {
		h.first = true
		x.urgent = append(x.urgent, h)
	}
}

// take returns the next host to ask for; nil if there is none that may be asked for
// now. Urgent ones and those of the queue take turns.
func (x *hosts) take(now time.Duration) *host {
	for {
		queue := len(x.queue) > 0 && x.pace.wait(now) == 0
		var h *host
		switch {
		case len(x.urgent) > 0 && !(queue && x.turn):
			h, x.urgent, x.turn = x.urgent[0], x.urgent[1:], true
			h.first = false
		case queue:
			h, x.queue, x.turn = x.queue[0], x.queue[1:], false
			if !h.due {
				continue // asked for meanwhile
			}
			x.pace.take(now)
		default:
			return nil
		}
		if x.byIP[h.ip] == h && !h.asked { // neither forgotten nor asked for
			h.due, h.asked = false, true
			return h
		}
	}
}

func (x *hosts) askAll(hs map[*host]struct{}) {
	for h := range hs {
		x.ask(h)
	}
}

// concern puts those hosts into the queue that the changes are about. That the
// kernel resolves a host, or fails to, is no news of its place: else each question
// would bring the next one.
func (x *hosts) concern(s *locate.Set, now time.Duration) {
	if s.All {
		for _, h := range x.byIP {
			x.ask(h)
		}
		return
	}
	for ip, n := range s.Neighbours {
		for h := range x.byHop[ip] {
			switch {
			case !n.Usable:
				x.doubt(h, now)
			case len(h.known.MAC) == 0 || n.MAC != locate.MAC(h.known.MAC):
				x.ask(h)
			}
		}
	}
	for mac, learnt := range s.Learnt {
		for h := range x.byMAC[mac] {
			if learnt {
				x.ask(h)
			} else {
				x.doubt(h, now)
			}
		}
	}
	for i := range s.Links {
		x.askAll(x.byLink[i])
	}
	for p := range s.Routes {
		if p.IsSingleIP() {
			if h := x.byIP[p.Addr()]; h != nil {
				x.ask(h)
			}
			continue
		}
		for ip, h := range x.byIP { // compares addresses only
			if p.Contains(ip) {
				x.ask(h)
			}
		}
	}
	if len(s.Links)+len(s.Routes) > 0 {
		x.askAll(x.lost)
	}
}

// doubt has h asked for after a while, if it is not going to be.
func (x *hosts) doubt(h *host, now time.Duration) {
	if h.tries == 0 {
		x.wait(h, h.known, now)
	}
}

// retry puts those into the queue whose time has come.
func (x *hosts) retry(now time.Duration) {
	for len(x.unanswered) > 0 && x.unanswered[0].retry <= now {
		h := x.unanswered[0]
		x.unanswered.remove(h) // until there is an answer
		x.ask(h)
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
		earlier(x.unanswered[0].retry)
	}
	if len(x.urgent) > 0 {
		earlier(now)
	}
	if len(x.queue) > 0 {
		earlier(now + x.pace.wait(now))
	}
	if len(x.guests) > 0 {
		earlier(x.guests[0].until)
	}
	return at, ok
}
