// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"crypto/rand"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// moves is the control loop's state for members that seem to have moved.
type moves struct {
	policy           config.MovePolicy
	keyOf            func(group netip.Addr) (envelope.KeyID, bool) // the key that the group's members answer under
	inquiries        *inquiries
	unconfirmed      *sampler[unconfirmedMove]  // unconfirmed moves by port
	unproven         *sampler[unprovenLocation] // unproven locations by port
	count            api.Moves
	reresolvePolicer dataplane.Policer // the limit of lookups of hosts that ask from elsewhere
}

// unconfirmedMove is a move that the member did not confirm.
type unconfirmedMove struct {
	ip     netip.Addr
	origin dataplane.Origin
	place  string
	answer string
}

// unconfirmedLogInterval is the least time between two log lines about unconfirmed moves
// to one port.
const unconfirmedLogInterval = 10 * time.Second

func newMoves(policy config.MovePolicy, ports int) moves {
	return moves{policy: policy, inquiries: newInquiries(ports), unconfirmed: newSampler[unconfirmedMove](ports, unconfirmedLogInterval), unproven: newSampler[unprovenLocation](ports, unconfirmedLogInterval), reresolvePolicer: dataplane.NewPolicer(maxReresolved)}
}

// setupMoves sets up the handling of members that seem to move.
func (c *control) setupMoves(cfg *config.Config) {
	c.moves = newMoves(cfg.UnconfirmedMoves, len(c.ports))
	c.moves.keyOf = func(group netip.Addr) (envelope.KeyID, bool) { return c.registrar.Key(group) }
	c.dir.kernelDecides = cfg.UnconfirmedMoves == config.MoveFollow
	c.dir.onAnswer = c.requestAnew
	c.dir.onSuspect = func(h *host, at locate.Location) {
		if s := c.dir.originOf(&at); s.Port >= 0 {
			c.startInquiry(h, s)
		}
	}
}

// setPinner makes p pin members to their locations.
func (c *control) setPinner(p *pinner) {
	c.dir.hosts.onPinChange = func(h *host) {
		pi := c.plane.PortIndex(h.pinned.Ifindex)
		if pi < 0 || !h.isPinned() {
			p.set(h.ip, pinTarget{})
			return
		}
		// A member behind a port that is down is not pinned, so that the kernel may find
		// it elsewhere.
		p.set(h.ip, pinTarget{h.pinned, c.ports[pi].reportedUp})
	}
}

// repinPort renews the pins of the hosts behind a port that has come up or gone down.
func (c *control) repinPort(p *port) {
	for h := range c.dir.hosts.byLink[p.Ifindex] {
		c.dir.hosts.onPinChange(h)
	}
}

// handleSighting starts the inquiries that a sighting gives reason for.
func (c *control) handleSighting(s dataplane.Sighting) {
	if c.moves.policy == config.MoveFollow {
		return
	}
	x := c.dir.hosts
	if !s.IP.IsValid() {
		c.startInquiries(x.byMAC[locate.MAC(s.MAC)], s.Origin)
		return
	}
	if h := x.byIP[s.IP]; h != nil {
		c.startInquiry(h, s.Origin)
	}
	c.startInquiries(x.byHop[s.IP], s.Origin)
}

// startInquiries is startInquiry for hosts that share an address: for as many of them as
// the limit of open inquiries at the port allows.
func (c *control) startInquiries(hs map[*host]struct{}, s dataplane.Origin) {
	n := maxInquiries - c.moves.inquiries.count[s.Port]
	for h := range hs {
		if n--; n < 0 {
			return
		}
		c.startInquiry(h, s)
	}
}

// startInquiry asks h whether it is at s, unless h is pinned there and has a place in all its
// groups, or an inquiry at that port is open. One that has no place is asked where the kernel has it.
func (c *control) startInquiry(h *host, s dataplane.Origin) {
	home, way := c.dir.originOf(&h.pinned), h.wayTo()
	near := c.dir.originOf(&way)
	if len(h.groups) == 0 || near.Port < 0 || home.Port == s.Port && home.MAC == s.MAC && !h.hasUnknownPlace() || !c.moves.inquiries.mayStart(h.ip, s.Port) {
		return
	}
	q := &inquiry{ip: h.ip, newOrigin: s, oldOrigin: home, startedAt: c.now()}
	c.moves.inquiries.start(q)
	c.moves.count.Inquiries++
	if s.Port != near.Port && !c.sameBridge(&way, s.Port) {
		q.notSentReason = "no route leads there"
		return
	}
	for g := range h.groups {
		key, ok := c.moves.keyOf(g.reg.Group)
		if !ok || slices.ContainsFunc(q.parts, func(a inquiryPart) bool { return a.key == key }) {
			continue
		}
		a := inquiryPart{key: key, group: g.reg.Group}
		_, _ = rand.Read(a.nonce[:]) // never fails
		_, _ = rand.Read(a.nonceAtOld[:])
		var err, err2 error
		a.toNew, err = c.registrar.Where(a.group, h.ip, a.nonce)
		a.toOld, err2 = c.registrar.Where(a.group, h.ip, a.nonceAtOld)
		if err == nil && err2 == nil { // an error: it has just left the group
			q.parts = append(q.parts, a)
		}
	}
	c.sendInquiry(q)
}

// sameBridge reports whether a port belongs to the bridge that a location is behind: a
// host can move only to such a port without a change of routes.
func (c *control) sameBridge(at *locate.Location, port int) bool {
	l := at.Learnt
	return l.Bridge != 0 && l.Port == at.Ifindex && c.ports[port].Bridge == l.Bridge
}

// sendInquiry sends the parts of q that are not answered yet.
func (c *control) sendInquiry(q *inquiry) {
	for i := range q.parts {
		if a := &q.parts[i]; !a.answered {
			c.sendBy(q.newOrigin, &a.toNew)
			if !q.answeredFromOld && q.oldOrigin.Port >= 0 {
				c.sendBy(q.oldOrigin, &a.toOld)
			}
		}
	}
}

// advanceInquiries does the steps of inquiries that are due.
func (c *control) advanceInquiries() {
	for {
		q, step := c.moves.inquiries.take(c.now())
		switch {
		case q == nil:
			return
		case step < stepGivenUp:
			c.sendInquiry(q)
		case step == stepGivenUp && !q.answeredFromNew:
			c.inquiryFailed(q)
		}
	}
}

// handleHere handles the answer of a member, which came from the given origin.
func (c *control) handleHere(from dataplane.Origin, e *envelope.Event) {
	if c.handleProof(from, e) {
		return
	}
	q, a, moved := c.moves.inquiries.answered(e.Member.IP, e.Nonce, from)
	h := c.dir.hosts.byIP[e.Member.IP]
	switch {
	case q == nil || h == nil || a.group != e.Group:
		c.moves.count.Stray++
	case !moved:
		q.answeredFromOld = true
	case !a.answered && c.dir.originOf(&h.pinned) == q.oldOrigin: // otherwise it has moved since
		a.answered, q.answeredFromNew = true, true
		c.moves.count.Confirmed++
		h.proven[a.key] = provenLocation{c.locationAt(h.wayTo(), q.newOrigin), c.now()}
		c.relocate(h, q.newOrigin, "confirmed by the member", func(g *group) bool {
			k, ok := c.moves.keyOf(g.reg.Group)
			return ok && k == a.key
		})
	}
}

// locationAt returns the location for origin s of a host that is, or was, at another
// location; none if the host cannot get there without a change of routes.
func (c *control) locationAt(at locate.Location, s dataplane.Origin) locate.Location {
	p, vlan := c.ports[s.Port], s.VLAN
	if vlan == p.VLAN {
		vlan = 0
	}
	return at.At(p.Ifindex, locate.MAC(s.MAC), vlan)
}

// relocate sets the location of h to s in the groups that match.
func (c *control) relocate(h *host, s dataplane.Origin, why string, match func(*group) bool) {
	at := c.locationAt(h.wayTo(), s)
	if !at.Known() {
		return
	}
	for g := range h.groups {
		if match(g) {
			c.journal.Add(api.Event{Kind: api.EventMoved, Group: g.reg.Group, Member: h.ip, Reason: c.dir.locationText(at) + ": " + why})
		}
	}
	c.dir.setLocation(h, at, nil, match)
	h.seenElsewhere = nil
}

// inquiryFailed handles a move that the member has not confirmed.
func (c *control) inquiryFailed(q *inquiry) {
	h := c.dir.hosts.byIP[q.ip]
	if h == nil || c.dir.originOf(&h.pinned) != q.oldOrigin {
		return
	}
	c.moves.count.Unconfirmed++
	h.seenElsewhere, h.seenElsewhereAt = &q.newOrigin, c.now()
	x := unconfirmedMove{ip: q.ip, origin: q.newOrigin, place: c.dir.locationText(h.pinned), answer: "none"}
	switch {
	case q.notSentReason != "":
		x.answer = "no inquiry: " + q.notSentReason
	case q.answeredFromOld:
		x.answer = "from its old location"
	}
	if suppressed, report := c.moves.unconfirmed.add(c.now(), q.newOrigin.Port, x); report {
		c.logUnconfirmed(x, suppressed)
	}
	if c.moves.policy == config.MoveEvict && !q.answeredFromOld && q.oldOrigin.Port >= 0 && q.notSentReason == "" {
		c.evictMoved(h)
	}
}

// seenElsewhereFor is how long group show reports that a member was seen elsewhere.
const seenElsewhereFor = time.Minute

// seenElsewhere returns the text about a member that was seen elsewhere lately, or "".
func (c *control) seenElsewhere(ip netip.Addr) string {
	h := c.dir.hosts.byIP[ip]
	if h == nil {
		return ""
	}
	s := c.lastSeenElsewhere(h)
	if s == nil {
		return ""
	}
	return fmt.Sprintf("seen at %s %s, and has not confirmed that it moved: if it did, gleam group move-member", c.ports[s.Port].Name, s.MAC)
}

// lastSeenElsewhere returns where h was seen elsewhere lately, or nil.
func (c *control) lastSeenElsewhere(h *host) *dataplane.Origin {
	if h.seenElsewhere == nil || c.now()-h.seenElsewhereAt > seenElsewhereFor {
		return nil
	}
	return h.seenElsewhere
}

func (c *control) logUnconfirmed(x unconfirmedMove, suppressed uint64) {
	c.notify(true, "a member was seen elsewhere and has not confirmed that it moved: somebody uses its address, or it answers no envelopes",
		"member", x.ip, "port", c.ports[x.origin.Port].Name, "mac", x.origin.MAC, "vlan", x.origin.VLAN, "location", x.place, "answer", x.answer,
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
		i, ok := g.hosts[h.ip]
		if !ok || g.slots[i].gone {
			continue
		}
		k := g.slots[i].record.Key()
		var psn rocev2.PSN
		var st dataplane.GroupState
		_ = g.handle.Read(&st) // an error: the switch has stopped
		if i < len(st.Status.Members) {
			psn = st.Status.Members[i].Acked
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
	way := h.wayTo()
	home := c.dir.originOf(&way)
	switch {
	case home.Port < 0:
		return refuse("the location of %s is not known: see gleamd's log", member)
	case !h.pinned.Known() && m.MAC == "" && h.seenElsewhere == nil:
		return refuse("the location of %s of before the restart is not there: name the port and the MAC address", member)
	}
	s := home
	switch {
	case m.Port == "" && m.MAC == "" && h.seenElsewhere == nil:
		return refuse("%s was not seen anywhere else: name the port, and the MAC address if it has changed", member)
	case m.Port == "" && m.MAC == "":
		s = *h.seenElsewhere
	case m.Port != "":
		s.Port = slices.IndexFunc(c.ports, func(p *port) bool { return p.Name == m.Port })
		if s.Port < 0 {
			return &api.Error{Reason: api.ReasonUnknownPort, Message: fmt.Sprintf("there is no port %s: see `gleam port list`", m.Port)}
		}
	}
	if m.MAC != "" {
		s.MAC = m.Address()
	}
	if s.Port != home.Port && !c.sameBridge(&way, s.Port) {
		return refuse("%s is not in the bridge that %s is behind: change the route to it", c.ports[s.Port].Name, member)
	}
	c.moves.count.Confirmed++
	c.relocate(h, s, "by the operator", func(*group) bool { return true })
	return nil
}
