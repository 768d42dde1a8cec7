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

// moves is the control loop's state for members that seem to have moved.
type moves struct {
	policy      config.MovePolicy
	keyOf       func(group netip.Addr) (envelope.KeyID, bool) // the key that the group's members answer under
	inquiries   *inquiries
	unconfirmed *sampler[unconfirmedMove]  // by port
	unproven    *sampler[unprovenLocation] // by port
	count       api.Moves
}

// unconfirmedMove is a move that the member did not confirm.
type unconfirmedMove struct {
	ip     netip.Addr
	origin origin
	place  string
	answer string
}

// unconfirmedLogInterval is the least time between two log lines about unconfirmed moves
// to one port.
const unconfirmedLogInterval = 10 * time.Second

func newMoves(policy config.MovePolicy, ports int) moves {
	return moves{policy: policy, inquiries: newInquiries(ports), unconfirmed: newSampler[unconfirmedMove](ports, unconfirmedLogInterval), unproven: newSampler[unprovenLocation](ports, unconfirmedLogInterval)}
}

// next returns when advanceInquiries has work; ok is false if it will have none.
func (m *moves) next() (at time.Duration, ok bool) {
	at, ok = m.inquiries.next()
	for _, next := range [...]func() (time.Duration, bool){m.unconfirmed.next, m.unproven.next} {
		if t, some := next(); some && (!ok || t < at) {
			at, ok = t, true
		}
	}
	return at, ok
}

// setupMoves sets up the handling of members that seem to move.
func (c *control) setupMoves(cfg *config.Config) {
	c.moves = newMoves(cfg.UnconfirmedMoves, len(c.workers.ports))
	c.moves.keyOf = func(group netip.Addr) (envelope.KeyID, bool) { return c.registrar.Key(group) }
	c.dir.kernelDecides = cfg.UnconfirmedMoves == config.MoveFollow
	c.dir.onSuspect = func(h *host, at locate.Location) {
		if s := c.originOf(&at); s.port >= 0 {
			c.startInquiry(h, s)
		}
	}
}

// setPinner makes p pin members to their locations.
func (c *control) setPinner(p *pinner) {
	c.dir.hosts.onPinChange = func(h *host) {
		pi := c.firstWorker.portIndex(h.pinned.Ifindex)
		if pi < 0 || len(h.groups) == 0 {
			p.set(h.ip, pinTarget{})
			return
		}
		// A member behind a port that is down is not pinned, so that the kernel may find
		// it elsewhere.
		p.set(h.ip, pinTarget{h.pinned, c.workers.ports[pi].reportedUp})
	}
}

// repinPort renews the pins of the hosts behind a port that has come up or gone down.
func (c *control) repinPort(p *port) {
	for h := range c.dir.hosts.byLink[p.ifindex] {
		c.dir.hosts.onPinChange(h)
	}
}

// originOf returns the origin of frames from a host at the given location; its port is -1
// for the zero Location.
func (c *control) originOf(at *locate.Location) (s origin) {
	s.port, s.vlan = c.firstWorker.portIndex(at.Ifindex), at.VLAN
	if s.port >= 0 && s.vlan == 0 {
		s.vlan = c.workers.ports[s.port].vlan
	}
	copy(s.mac[:], at.MAC)
	return s
}

// handleSighting starts the inquiries that a sighting gives reason for.
func (c *control) handleSighting(s sighting) {
	if c.moves.policy == config.MoveFollow {
		return
	}
	x := c.dir.hosts
	if !s.ip.IsValid() {
		c.startInquiries(x.byMAC[locate.MAC(s.mac)], s.origin)
		return
	}
	if h := x.byIP[s.ip]; h != nil {
		c.startInquiry(h, s.origin)
	}
	c.startInquiries(x.byHop[s.ip], s.origin)
}

// startInquiries is startInquiry for hosts that share an address: for as many of them as
// the limit of open inquiries at the port allows.
func (c *control) startInquiries(hs map[*host]struct{}, s origin) {
	n := maxInquiries - c.moves.inquiries.count[s.port]
	for h := range hs {
		if n--; n < 0 {
			return
		}
		c.startInquiry(h, s)
	}
}

// startInquiry asks h whether it is at s, unless h is pinned there, or an inquiry at that
// port is open.
func (c *control) startInquiry(h *host, s origin) {
	home := c.originOf(&h.pinned)
	if len(h.groups) == 0 || home.port < 0 || home.port == s.port && home.mac == s.mac || !c.moves.inquiries.mayAsk(h.ip, s.port) {
		return
	}
	q := &inquiry{ip: h.ip, newOrigin: s, oldOrigin: home, startedAt: c.now()}
	c.moves.inquiries.start(q)
	c.moves.count.Inquiries++
	if s.port != home.port && !c.sameBridge(&h.pinned, s.port) {
		q.notAskedText = "no route leads there"
		return
	}
	for g := range h.groups {
		key, ok := c.moves.keyOf(g.reg.Group)
		if !ok || slices.ContainsFunc(q.asks, func(a inquiryAsk) bool { return a.key == key }) {
			continue
		}
		a := inquiryAsk{key: key, group: g.reg.Group}
		_, _ = rand.Read(a.nonce[:]) // never fails
		_, _ = rand.Read(a.nonceAtOld[:])
		var err, err2 error
		a.toNew, err = c.registrar.Where(a.group, h.ip, a.nonce)
		a.toOld, err2 = c.registrar.Where(a.group, h.ip, a.nonceAtOld)
		if err == nil && err2 == nil { // an error: it has just left the group
			q.asks = append(q.asks, a)
		}
	}
	c.sendInquiry(q)
}

// sameBridge reports whether a port belongs to the bridge that a location is behind: a
// host can move only to such a port without a change of routes.
func (c *control) sameBridge(at *locate.Location, port int) bool {
	l := at.Learnt
	return l.Bridge != 0 && l.Port == at.Ifindex && c.workers.ports[port].bridge == l.Bridge
}

// sendInquiry sends the parts of q that are not answered yet.
func (c *control) sendInquiry(q *inquiry) {
	for i := range q.asks {
		if a := &q.asks[i]; !a.answered {
			c.sendBy(q.newOrigin, &a.toNew)
			if !q.answeredFromOld {
				c.sendBy(q.oldOrigin, &a.toOld)
			}
		}
	}
}

// advanceInquiries does the steps of inquiries that are due.
func (c *control) advanceInquiries() {
	for {
		q, stage := c.moves.inquiries.take(c.now())
		switch {
		case q == nil:
			c.moves.unconfirmed.due(c.now(), c.logUnconfirmed)
			c.moves.unproven.due(c.now(), c.logUnproven)
			return
		case stage < stepGivenUp:
			c.sendInquiry(q)
		case stage == stepGivenUp && !q.answeredFromNew:
			c.inquiryFailed(q)
		}
	}
}

// handleHere handles the answer of a member, which came by d.
func (c *control) handleHere(d *datagram, e *envelope.Event) {
	if c.handleProof(d, e) {
		return
	}
	q, a, moved := c.moves.inquiries.answered(e.Member.IP, e.Nonce, d.origin())
	h := c.dir.hosts.byIP[e.Member.IP]
	switch {
	case q == nil || h == nil || a.group != e.Group:
		c.moves.count.Stray++
	case !moved:
		q.answeredFromOld = true
	case !a.answered && c.originOf(&h.pinned) == q.oldOrigin: // otherwise it has moved since
		a.answered, q.answeredFromNew = true, true
		c.moves.count.Confirmed++
		h.proven[a.key] = provenLocation{c.locationAt(h.pinned, q.newOrigin), c.now()}
		c.relocate(h, q.newOrigin, "confirmed by the member", func(g *group) bool {
			k, ok := c.moves.keyOf(g.reg.Group)
			return ok && k == a.key
		})
	}
}

// locationAt returns the location for origin s of a host that is, or was, at another
// location.
func (c *control) locationAt(at locate.Location, s origin) locate.Location {
	at.MAC = slices.Clone(s.mac[:])
	if p := c.workers.ports[s.port]; p.ifindex != at.Ifindex {
		at.Links = append(slices.Clone(at.Links[:len(at.Links)-1]), p.ifindex)
		at.Ifindex, at.Learnt.Port = p.ifindex, p.ifindex
	}
	if at.VLAN = s.vlan; s.vlan == c.workers.ports[s.port].vlan {
		at.VLAN = 0
	}
	return at
}

// relocate sets the location of h to s in the groups that match.
func (c *control) relocate(h *host, s origin, why string, match func(*group) bool) {
	at := c.locationAt(h.pinned, s)
	for g := range h.groups {
		if match(g) {
			c.journal.add(api.Event{Kind: api.EventMoved, Group: g.reg.Group, Member: h.ip, Reason: c.dir.locationText(at) + ": " + why})
		}
	}
	c.dir.setLocation(h, at, nil, match)
	h.seenElsewhere = nil
}

// inquiryFailed handles a move that the member has not confirmed.
func (c *control) inquiryFailed(q *inquiry) {
	h := c.dir.hosts.byIP[q.ip]
	if h == nil || c.originOf(&h.pinned) != q.oldOrigin {
		return
	}
	c.moves.count.Unconfirmed++
	h.seenElsewhere, h.seenElsewhereAt = &q.newOrigin, c.now()
	x := unconfirmedMove{ip: q.ip, origin: q.newOrigin, place: c.dir.locationText(h.pinned), answer: "none"}
	switch {
	case q.notAskedText != "":
		x.answer = "not asked: " + q.notAskedText
	case q.answeredFromOld:
		x.answer = "from its old place"
	}
	if suppressed, report := c.moves.unconfirmed.add(c.now(), q.newOrigin.port, x); report {
		c.logUnconfirmed(x, suppressed)
	}
	if c.moves.policy == config.MoveEvict && !q.answeredFromOld && q.notAskedText == "" {
		c.evictMoved(h)
	}
}

// seenElsewhereFor is how long group show reports that a member was seen elsewhere.
const seenElsewhereFor = time.Minute

// seenElsewhere returns the text about a member that was seen elsewhere lately, or "".
func (c *control) seenElsewhere(ip netip.Addr) string {
	h := c.dir.hosts.byIP[ip]
	if h == nil || h.seenElsewhere == nil || c.now()-h.seenElsewhereAt > seenElsewhereFor {
		return ""
	}
	return fmt.Sprintf("seen at %s %s, and has not confirmed that it moved: if it did, gleam group move-member", c.workers.ports[h.seenElsewhere.port].name, h.seenElsewhere.mac)
}

func (c *control) logUnconfirmed(x unconfirmedMove, suppressed uint64) {
	c.notify(true, "a member was seen elsewhere and has not confirmed that it moved: somebody uses its address, or it answers no envelopes",
		"member", x.ip, "port", c.workers.ports[x.origin.port].name, "mac", x.origin.mac, "vlan", x.origin.vlan, "place", x.place, "answer", x.answer,
		"policy", c.moves.policy, "remedy", "if it did move: gleam group move-member", "suppressed", suppressed)
}

// evictMoved removes h from the groups whose policy allows that.
func (c *control) evictMoved(h *host) {
	var groups []*group
	for g := range h.groups {
		if g.reg.Policy != mcast.Strict {
			groups = append(groups, g)
		}
	}
	for _, g := range groups {
		i := slices.IndexFunc(g.slots, func(s slot) bool { return !s.gone && s.record.IP == h.ip })
		if i < 0 {
			continue
		}
		k := g.slots[i].record.Key()
		var psn rocev2.PSN
		var st mcast.GroupStatus
		g.worker.do(func() { g.worker.core.Snapshot(g.id, &st) })
		if i < len(st.Members) {
			psn = st.Members[i].Acked
		}
		c.dir.RemoveMember(g.reg.Group, k, envelope.Evicted)
		c.registrar.MemberEvicted(c.now(), g.reg.Group, k, envelope.Elsewhere, psn, &c.out)
		c.notify(true, "member evicted", "group", g.reg.Group, "member", k, "cause", envelope.Cause(envelope.Elsewhere))
		c.sendOutput()
	}
}

// moveByOperator moves a member at the operator's request. Without a port and a MAC
// address, the member moves to where it was seen last.
func (c *control) moveByOperator(ip, member netip.Addr, m *api.MoveMember) error {
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
	home := c.originOf(&h.pinned)
	if home.port < 0 {
		return refuse("the place of %s is not known: see gleamd's log", member)
	}
	s := home
	switch {
	case m.Port == "" && m.MAC == "" && h.seenElsewhere == nil:
		return refuse("%s was not seen anywhere else: name the port, and the MAC address if it has changed", member)
	case m.Port == "" && m.MAC == "":
		s = *h.seenElsewhere
	case m.Port != "":
		s.port = slices.IndexFunc(c.workers.ports, func(p *port) bool { return p.name == m.Port })
		if s.port < 0 {
			return &api.Error{Reason: api.ReasonUnknownPort, Message: fmt.Sprintf("there is no port %s: see `gleam port list`", m.Port)}
		}
	}
	if m.MAC != "" {
		s.mac = m.Address()
	}
	if s.port != home.port && !c.sameBridge(&h.pinned, s.port) {
		return refuse("%s is not in the bridge that %s is behind: change the route to it", c.workers.ports[s.port].name, member)
	}
	c.moves.count.Confirmed++
	c.relocate(h, s, "by the operator", func(*group) bool { return true })
	return nil
}
