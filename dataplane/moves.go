// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"crypto/rand"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/locate"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// moves is what the control loop has to do with members that seem to be elsewhere.
type moves struct {
	policy    config.UnconfirmedMoves
	keyOf     func(group netip.Addr) (envelope.KeyID, bool) // under which its members answer
	inquiries *inquiries
	doubted   *sampler[doubted]  // by port
	unproven  *sampler[unproven] // by port
	count     api.Moves
}

// doubted is a move that was not confirmed.
type doubted struct {
	ip     netip.Addr
	at     spot
	place  string
	answer string
}

// doubtInterval is the least time between two log lines about unconfirmed moves to one
// port.
const doubtInterval = 10 * time.Second

func newMoves(policy config.UnconfirmedMoves, ports int) moves {
	return moves{policy: policy, inquiries: newInquiries(ports), doubted: newSampler[doubted](ports, doubtInterval), unproven: newSampler[unproven](ports, doubtInterval)}
}

// next says when inquire has something to do.
func (m *moves) next() (at time.Duration, ok bool) {
	at, ok = m.inquiries.next()
	for _, next := range [...]func() (time.Duration, bool){m.doubted.next, m.unproven.next} {
		if t, some := next(); some && (!ok || t < at) {
			at, ok = t, true
		}
	}
	return at, ok
}

// followMembers sets up what becomes of members that seem to move.
func (c *control) followMembers(cfg *config.Config) {
	c.moves = newMoves(cfg.UnconfirmedMoves, len(c.crew.ports))
	c.moves.keyOf = func(group netip.Addr) (envelope.KeyID, bool) { return c.reg.Key(group) }
	c.dir.follows = cfg.UnconfirmedMoves == config.MovesFollow
	c.dir.suspect = func(h *host, at locate.Location) {
		if s := c.spotOf(&at); s.port >= 0 {
			c.suspect(h, s)
		}
	}
}

// pinBy has p hold members where they are.
func (c *control) pinBy(p *pinner) {
	c.dir.hosts.pinned = func(h *host) {
		pi := c.w.portOf(h.pin.Ifindex)
		if pi < 0 || len(h.groups) == 0 {
			p.set(h.ip, pin{})
			return
		}
		// Behind a port that is down a member is not held, so that the kernel may find it.
		p.set(h.ip, pin{h.pin, c.crew.ports[pi].saidUp})
	}
}

// portTurned renews the pins of the hosts behind a port that has come up or gone down.
func (c *control) portTurned(p *port) {
	for h := range c.dir.hosts.byLink[p.ifindex] {
		c.dir.hosts.pinned(h)
	}
}

// spotOf returns where a host's frames come from that is at a place; its port is -1 at
// the zero Location.
func (c *control) spotOf(at *locate.Location) (s spot) {
	s.port, s.vlan = c.w.portOf(at.Ifindex), at.VLAN
	if s.port >= 0 && s.vlan == 0 {
		s.vlan = c.crew.ports[s.port].vlan
	}
	copy(s.mac[:], at.MAC)
	return s
}

// seen takes in a sighting.
func (c *control) seen(s sighting) {
	if c.moves.policy == config.MovesFollow {
		return
	}
	x := c.dir.hosts
	if !s.ip.IsValid() {
		c.suspectAll(x.byMAC[locate.MAC(s.mac)], s.spot)
		return
	}
	if h := x.byIP[s.ip]; h != nil {
		c.suspect(h, s.spot)
	}
	c.suspectAll(x.byHop[s.ip], s.spot)
}

// suspectAll is suspect for hosts that have something in common: as many as may be asked
// at a port, if there are more.
func (c *control) suspectAll(hs map[*host]struct{}, s spot) {
	n := maxQuestions - c.moves.inquiries.count[s.port]
	for h := range hs {
		if n--; n < 0 {
			return
		}
		c.suspect(h, s)
	}
}

// suspect asks h whether it is at s, unless that is where it is pinned, or it was asked
// a moment ago.
func (c *control) suspect(h *host, s spot) {
	home := c.spotOf(&h.pin)
	if len(h.groups) == 0 || home.port < 0 || home.port == s.port && home.mac == s.mac || !c.moves.inquiries.may(h.ip, s.port) {
		return
	}
	q := &inquiry{ip: h.ip, at: s, home: home, began: c.now()}
	c.moves.inquiries.add(q)
	c.moves.count.Asked++
	if s.port != home.port && !c.bridged(&h.pin, s.port) {
		q.because = "no route leads there"
		return
	}
	for g := range h.groups {
		key, ok := c.moves.keyOf(g.reg.Group)
		if !ok || slices.ContainsFunc(q.asks, func(a asked) bool { return a.key == key }) {
			continue
		}
		a := asked{key: key, group: g.reg.Group}
		_, _ = rand.Read(a.nonce[:]) // never fails
		_, _ = rand.Read(a.nonceAtHome[:])
		var err, err2 error
		a.packet, err = c.reg.Where(a.group, h.ip, a.nonce)
		a.home, err2 = c.reg.Where(a.group, h.ip, a.nonceAtHome)
		if err == nil && err2 == nil { // else it has just left the group
			q.asks = append(q.asks, a)
		}
	}
	c.sendAsks(q)
}

// bridged reports whether a port is one of the bridge that a place is behind: only there
// can a host go without a change of routes.
func (c *control) bridged(at *locate.Location, port int) bool {
	l := at.Learnt
	return l.Bridge != 0 && l.Port == at.Ifindex && c.crew.ports[port].bridge == l.Bridge
}

// sendAsks sends what is not answered yet.
func (c *control) sendAsks(q *inquiry) {
	for i := range q.asks {
		if a := &q.asks[i]; !a.answered {
			c.sendBy(q.at, &a.packet)
			if !q.atHome {
				c.sendBy(q.home, &a.home)
			}
		}
	}
}

// inquire goes on with the inquiries.
func (c *control) inquire() {
	for {
		q, stage := c.moves.inquiries.take(c.now())
		switch {
		case q == nil:
			c.moves.doubted.due(c.now(), c.tellDoubted)
			c.moves.unproven.due(c.now(), c.tellUnproven)
			return
		case stage < stageGivenUp:
			c.sendAsks(q)
		case stage == stageGivenUp && !q.moved:
			c.unconfirmed(q)
		}
	}
}

// here takes in the answer of a member, which came by d.
func (c *control) here(d *datagram, e *envelope.Event) {
	if c.proves(d, e) {
		return
	}
	q, a, moved := c.moves.inquiries.answered(e.Member.IP, e.Nonce, d.spot())
	h := c.dir.hosts.byIP[e.Member.IP]
	switch {
	case q == nil || h == nil || a.group != e.Group:
		c.moves.count.Stray++
	case !moved:
		q.atHome = true
	case !a.answered && c.spotOf(&h.pin) == q.home: // else it has moved meanwhile
		a.answered, q.moved = true, true
		c.moves.count.Confirmed++
		h.proven[a.key] = proven{c.locationAt(h.pin, q.at), c.now()}
		c.moveTo(h, q.at, "confirmed by the member", func(g *group) bool {
			k, ok := c.moves.keyOf(g.reg.Group)
			return ok && k == a.key
		})
	}
}

// locationAt returns the place at s of a host that is, or was, at another one.
func (c *control) locationAt(at locate.Location, s spot) locate.Location {
	at.MAC = slices.Clone(s.mac[:])
	if p := c.crew.ports[s.port]; p.ifindex != at.Ifindex {
		at.Links = append(slices.Clone(at.Links[:len(at.Links)-1]), p.ifindex)
		at.Ifindex, at.Learnt.Port = p.ifindex, p.ifindex
	}
	if at.VLAN = s.vlan; s.vlan == c.crew.ports[s.port].vlan {
		at.VLAN = 0
	}
	return at
}

// moveTo makes s the place of h in the groups that match.
func (c *control) moveTo(h *host, s spot, why string, match func(*group) bool) {
	at := c.locationAt(h.pin, s)
	for g := range h.groups {
		if match(g) {
			c.journal.add(api.Event{Kind: api.EventMoved, Group: g.reg.Group, Member: h.ip, Reason: c.dir.placeString(at) + ": " + why})
		}
	}
	c.dir.moveIn(h, at, nil, match)
	h.seen = nil
}

// unconfirmed is what becomes of a move that the member has not confirmed.
func (c *control) unconfirmed(q *inquiry) {
	h := c.dir.hosts.byIP[q.ip]
	if h == nil || c.spotOf(&h.pin) != q.home {
		return
	}
	c.moves.count.Unconfirmed++
	h.seen, h.seenAt = &q.at, c.now()
	x := doubted{ip: q.ip, at: q.at, place: c.dir.placeString(h.pin), answer: "none"}
	switch {
	case q.because != "":
		x.answer = "not asked: " + q.because
	case q.atHome:
		x.answer = "from its old place"
	}
	if suppressed, report := c.moves.doubted.add(c.now(), q.at.port, x); report {
		c.tellDoubted(x, suppressed)
	}
	if c.moves.policy == config.MovesEvict && !q.atHome && q.because == "" {
		c.evictMoved(h)
	}
}

// seenTime is how long group show says that a member was seen elsewhere.
const seenTime = time.Minute

// seenElsewhere says where a member was seen, if that was not long ago.
func (c *control) seenElsewhere(ip netip.Addr) string {
	h := c.dir.hosts.byIP[ip]
	if h == nil || h.seen == nil || c.now()-h.seenAt > seenTime {
		return ""
	}
	return fmt.Sprintf("seen at %s %s, and has not confirmed that it moved: if it did, gleam group move-member", c.crew.ports[h.seen.port].name, h.seen.mac)
}

func (c *control) tellDoubted(x doubted, suppressed uint64) {
	c.notify(true, "a member was seen elsewhere and has not confirmed that it moved: somebody uses its address, or it answers no envelopes",
		"member", x.ip, "port", c.crew.ports[x.at.port].name, "mac", x.at.mac, "vlan", x.at.vlan, "place", x.place, "answer", x.answer,
		"policy", c.moves.policy, "remedy", "if it did move: gleam group move-member", "suppressed", suppressed)
}

// evictMoved removes h from the groups whose policy lets a member go.
func (c *control) evictMoved(h *host) {
	var groups []*group
	for g := range h.groups {
		if g.reg.Policy != mcast.Strict {
			groups = append(groups, g)
		}
	}
	for _, g := range groups {
		i := slices.IndexFunc(g.slots, func(s slot) bool { return !s.gone && s.rec.IP == h.ip })
		if i < 0 {
			continue
		}
		k := g.slots[i].rec.Key()
		var psn rocev2.PSN
		var st mcast.GroupStatus
		g.w.do(func() { g.w.sw.Snapshot(g.id, &st) })
		if i < len(st.Members) {
			psn = st.Members[i].Acked
		}
		c.dir.RemoveMember(g.reg.Group, k, envelope.Evicted)
		c.reg.MemberEvicted(c.now(), g.reg.Group, k, envelope.Elsewhere, psn, &c.out)
		c.notify(true, "member evicted", "group", g.reg.Group, "member", k, "cause", envelope.Cause(envelope.Elsewhere))
		c.finish()
	}
}

// moveByHand is an operator's word for where a member is. Without a port the spot counts
// where it was seen last.
func (c *control) moveByHand(ip, member netip.Addr, m *api.MoveMember) error {
	g := c.dir.groups[ip]
	if g == nil {
		return unknownGroup(ip)
	}
	h := c.dir.hosts.byIP[member]
	if _, in := g.hosts[member]; h == nil || !in {
		return &api.Error{Reason: api.ReasonUnknownMember, Message: fmt.Sprintf("%s is not a member of group %s: see `gleam group show %s`", member, ip, ip)}
	}
	refuse := func(format string, args ...any) error {
		return &api.Error{Reason: api.ReasonMove, Message: fmt.Sprintf(format, args...)}
	}
	home := c.spotOf(&h.pin)
	if home.port < 0 {
		return refuse("the place of %s is not known: see gleamd's log", member)
	}
	s := home
	switch {
	case m.Port == "" && m.MAC == "" && h.seen == nil:
		return refuse("%s was not seen anywhere else: name the port, and the MAC address if it has changed", member)
	case m.Port == "" && m.MAC == "":
		s = *h.seen
	case m.Port != "":
		s.port = slices.IndexFunc(c.crew.ports, func(p *port) bool { return p.name == m.Port })
		if s.port < 0 {
			return &api.Error{Reason: api.ReasonUnknownPort, Message: fmt.Sprintf("there is no port %s: see `gleam port list`", m.Port)}
		}
	}
	if m.MAC != "" {
		s.mac = m.Address()
	}
	if s.port != home.port && !c.bridged(&h.pin, s.port) {
		return refuse("%s is not in the bridge that %s is behind: change the route to it", c.crew.ports[s.port].name, member)
	}
	c.moves.count.Confirmed++
	c.moveTo(h, s, "by the operator", func(*group) bool { return true })
	return nil
}
