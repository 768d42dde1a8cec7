// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/dataplane/locate"
)

// host is an address that members have, in one group or in many, and where it is.
type host struct {
	ip     netip.Addr
	at     locate.Location // its place; the zero value if there is none
	known  locate.Location // what the last answer depended on, though it may have been that the place is being resolved
	groups map[*group]struct{}
	due    bool          // is to be asked for
	mixed  bool          // not all groups have it at the same place
	tries  int           // without an answer
	retry  time.Duration // when it is asked for again, if tries > 0
}

// hosts are all hosts of members, with indexes by what their places depend on, so
// that a change concerns those alone that it is about.
type hosts struct {
	byIP       map[netip.Addr]*host
	byHop      index[netip.Addr]
	byMAC      index[locate.MAC]
	byLink     index[int]
	queue      []*host // those that are due
	unanswered map[*host]struct{}
	lost       map[*host]struct{} // without a place
}

// index finds hosts by a key.
type index[K comparable] map[K]map[*host]struct{}

func (x index[K]) add(k K, h *host) {
	if x[k] == nil {
		x[k] = make(map[*host]struct{})
	}
	x[k][h] = struct{}{}
}

func (x index[K]) remove(k K, h *host) {
	delete(x[k], h)
	if len(x[k]) == 0 {
		delete(x, k)
	}
}

func newHosts() *hosts {
	return &hosts{
		byIP: make(map[netip.Addr]*host), byHop: make(index[netip.Addr]), byMAC: make(index[locate.MAC]), byLink: make(index[int]),
		unanswered: make(map[*host]struct{}), lost: make(map[*host]struct{}),
	}
}

// Waits between two questions for a host that the kernel cannot resolve. Each
// question makes the kernel send a few requests.
const (
	firstRetry = time.Second
	lastRetry  = 32 * time.Second
)

// follow makes the hosts of g those of its slots: to be called when members have
// come or gone. Their places are those of the slots.
func (x *hosts) follow(g *group, slots []slot) {
	now := make(map[netip.Addr]struct{}, len(slots))
	for i := range slots {
		if s := &slots[i]; !s.gone {
			now[s.rec.IP] = struct{}{}
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
		h = &host{ip: s.rec.IP, groups: make(map[*group]struct{})}
		x.byIP[h.ip] = h
		x.place(h, s.place)
	}
	h.groups[g] = struct{}{}
	if !samePlace(h.at, s.place) { // it was asked for anew, and has moved
		h.mixed = true
		x.ask(h)
	}
}

func (x *hosts) leave(g *group, ip netip.Addr) {
	h := x.byIP[ip]
	if delete(h.groups, g); len(h.groups) > 0 {
		return
	}
	x.index(h, false)
	delete(x.byIP, ip)
	delete(x.unanswered, h)
	delete(x.lost, h)
}

// place notes where h is; the zero Location: nowhere.
func (x *hosts) place(h *host, at locate.Location) {
	x.index(h, false)
	h.at, h.known = at, at
	x.index(h, true)
	h.tries = 0
	delete(x.unanswered, h)
	if delete(x.lost, h); at.Ifindex == 0 {
		x.lost[h] = struct{}{}
	}
}

// wait notes that the kernel resolves h, with what is known until then.
func (x *hosts) wait(h *host, known locate.Location, now time.Duration) {
	x.index(h, false)
	h.known = known
	x.index(h, true)
	h.retry = now + min(firstRetry<<min(h.tries, 5), lastRetry)
	h.tries++
	x.unanswered[h] = struct{}{}
}

// index adds h to the indexes, or takes it out: under what it depends on and under
// its present place, which counts until it has another one.
func (x *hosts) index(h *host, add bool) {
	hop, mac, link := x.byHop.remove, x.byMAC.remove, x.byLink.remove
	if add {
		hop, mac, link = x.byHop.add, x.byMAC.add, x.byLink.add
	}
	for _, l := range []*locate.Location{&h.at, &h.known} {
		if l.Hop.IsValid() {
			hop(l.Hop, h)
		}
		if len(l.MAC) > 0 {
			mac(locate.MAC(l.MAC), h)
		}
		for _, i := range l.Links {
			link(i, h)
		}
		if l.Ifindex != 0 {
			link(l.Ifindex, h)
		}
	}
}

// ask puts h into the queue.
func (x *hosts) ask(h *host) {
	if !h.due {
		h.due = true
		x.queue = append(x.queue, h)
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

// retries puts those into the queue whose time has come.
func (x *hosts) retries(now time.Duration) {
	for h := range x.unanswered {
		if h.retry <= now {
			x.ask(h)
		}
	}
}

// next says when retries has something to do.
func (x *hosts) next() (at time.Duration, ok bool) {
	for h := range x.unanswered {
		if !h.due && (!ok || h.retry < at) {
			at, ok = h.retry, true
		}
	}
	return at, ok
}
