// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package location

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
)

// Inquirer asks hosts where they are, since the kernel's tables may have been changed by anyone's frames:
// members that seem to have moved, and those of registrations. What a host confirms under a key counts in the
// groups of that key.
type Inquirer struct {
	hosts            *Hosts
	policy           config.MovePolicy
	registrar        Registrar
	act              Actions
	inquiries        *inquiries
	proofs           *locationProofs
	count            api.Moves
	reresolvePolicer dataplane.Policer // the limit of lookups of hosts that ask from elsewhere
}

// Registrar is the part of envelope.Registrar that an Inquirer uses.
type Registrar interface {
	Key(group netip.Addr) (envelope.KeyID, bool) // the key that the group's members answer under
	Where(group, member netip.Addr, n envelope.Nonce) (envelope.Packet, error)
}

// Actions are what an Inquirer has the control plane do.
type Actions struct {
	Now         func() time.Duration
	Send        func(dataplane.Origin, *envelope.Packet)
	Moved       func(group, member netip.Addr, text string) // called before a member moves in a group
	Unconfirmed func(UnconfirmedMove)
	Evict       func(*Host) // called when a member does not answer, with the policy evict
}

// NewInquirer makes the Inquirer of hosts at as many ports.
func NewInquirer(x *Hosts, policy config.MovePolicy, r Registrar, do Actions) *Inquirer {
	m := &Inquirer{
		hosts: x, policy: policy, registrar: r, act: do,
		inquiries: newInquiries(x.ports.Len()), proofs: newLocationProofs(), reresolvePolicer: dataplane.NewPolicer(maxReresolved),
	}
	x.onAnswer = m.requestAnew
	x.onSuspect = func(h *Host, at locate.Location) {
		if s := x.Origin(at); s.Port >= 0 {
			m.startInquiry(h, s)
		}
	}
	return m
}

// Count returns how often members were asked, and what came of it.
func (m *Inquirer) Count() api.Moves { return m.count }

// NextInquiry returns when Advance has work, NextProof when SendProofs has.
func (m *Inquirer) NextInquiry() (at time.Duration, ok bool) { return m.inquiries.next() }
func (m *Inquirer) NextProof() (at time.Duration, ok bool)   { return m.proofs.next(m.act.Now()) }

// UnconfirmedMove is a move that the member did not confirm.
type UnconfirmedMove struct {
	IP     netip.Addr
	Origin dataplane.Origin
	Place  string
	Answer string
}

// Sighting starts the inquiries that a sighting gives reason for.
func (m *Inquirer) Sighting(s dataplane.Sighting) {
	if m.policy == config.MoveFollow {
		return
	}
	x := m.hosts
	if !s.IP.IsValid() {
		m.startInquiries(x.byMAC[locate.MAC(s.MAC)], s.Origin)
		return
	}
	if h := x.byIP[s.IP]; h != nil {
		m.startInquiry(h, s.Origin)
	}
	m.startInquiries(x.byHop[s.IP], s.Origin)
}

// startInquiries is startInquiry for hosts that share an address: for as many of them as
// the limit of open inquiries at the port allows.
func (m *Inquirer) startInquiries(hs map[*Host]struct{}, s dataplane.Origin) {
	n := maxInquiries - m.inquiries.count[s.Port]
	for h := range hs {
		if n--; n < 0 {
			return
		}
		m.startInquiry(h, s)
	}
}

// startInquiry asks h whether it is at s, unless h is pinned there and has a place in all its
// groups, or an inquiry at that port is open. One that has no place is asked where the kernel has it.
func (m *Inquirer) startInquiry(h *Host, s dataplane.Origin) {
	home, way := m.hosts.Origin(h.pinned), h.wayTo()
	near := m.hosts.Origin(way)
	if len(h.groups) == 0 || near.Port < 0 || home.Port == s.Port && home.MAC == s.MAC && !h.hasUnknownPlace() || !m.inquiries.mayStart(h.ip, s.Port) {
		return
	}
	q := &inquiry{ip: h.ip, newOrigin: s, oldOrigin: home, startedAt: m.act.Now()}
	m.inquiries.start(q)
	m.count.Inquiries++
	if s.Port != near.Port && !m.sameBridge(&way, s.Port) {
		q.notSentReason = "no route leads there"
		return
	}
	for group := range h.Groups() {
		key, ok := m.registrar.Key(group)
		if !ok || slices.ContainsFunc(q.parts, func(a inquiryPart) bool { return a.key == key }) {
			continue
		}
		a := inquiryPart{key: key, group: group}
		_, _ = rand.Read(a.nonce[:]) // never fails
		_, _ = rand.Read(a.nonceAtOld[:])
		var err, err2 error
		a.toNew, err = m.registrar.Where(a.group, h.ip, a.nonce)
		a.toOld, err2 = m.registrar.Where(a.group, h.ip, a.nonceAtOld)
		if err == nil && err2 == nil { // an error: it has just left the group
			q.parts = append(q.parts, a)
		}
	}
	m.sendInquiry(q)
}

// sameBridge reports whether a port belongs to the bridge that a location is behind: a
// host can move only to such a port without a change of routes.
func (m *Inquirer) sameBridge(at *locate.Location, port int) bool {
	l := at.Learnt
	return l.Bridge != 0 && l.Port == at.Ifindex && m.hosts.ports.Port(port).Bridge == l.Bridge
}

// sendInquiry sends the parts of q that are not answered yet.
func (m *Inquirer) sendInquiry(q *inquiry) {
	for i := range q.parts {
		if a := &q.parts[i]; !a.answered {
			m.act.Send(q.newOrigin, &a.toNew)
			if !q.answeredFromOld && q.oldOrigin.Port >= 0 {
				m.act.Send(q.oldOrigin, &a.toOld)
			}
		}
	}
}

// Advance does the steps of inquiries that are due.
func (m *Inquirer) Advance() {
	for {
		q, step := m.inquiries.take(m.act.Now())
		switch {
		case q == nil:
			return
		case step < stepGivenUp:
			m.sendInquiry(q)
		case step == stepGivenUp && !q.answeredFromNew:
			m.inquiryFailed(q)
		}
	}
}

// Here handles the answer of a member, which came from the given origin.
func (m *Inquirer) Here(from dataplane.Origin, e *envelope.Event) {
	if m.handleProof(from, e) {
		return
	}
	q, a, moved := m.inquiries.answered(e.Member.IP, e.Nonce, from)
	h := m.hosts.byIP[e.Member.IP]
	switch {
	case q == nil || h == nil || a.group != e.Group:
		m.count.Stray++
	case !moved:
		q.answeredFromOld = true
	case !a.answered && m.hosts.Origin(h.pinned) == q.oldOrigin: // otherwise it has moved since
		a.answered, q.answeredFromNew = true, true
		m.count.Confirmed++
		h.proven[a.key] = provenLocation{m.locationAt(h.wayTo(), q.newOrigin), m.act.Now()}
		m.relocate(h, q.newOrigin, "confirmed by the member", func(group netip.Addr, _ envelope.KeyID) bool {
			k, ok := m.registrar.Key(group)
			return ok && k == a.key
		})
	}
}

// locationAt returns the location for origin s of a host that is, or was, at another
// location; none if the host cannot get there without a change of routes.
func (m *Inquirer) locationAt(at locate.Location, s dataplane.Origin) locate.Location {
	p, vlan := m.hosts.ports.Port(s.Port), s.VLAN
	if vlan == p.VLAN {
		vlan = 0
	}
	return at.At(p.Ifindex, locate.MAC(s.MAC), vlan)
}

// relocate sets the location of h to s in the groups that match.
func (m *Inquirer) relocate(h *Host, s dataplane.Origin, why string, match groupMatch) {
	at := m.locationAt(h.wayTo(), s)
	if !at.Known() {
		return
	}
	for id, key := range h.groups {
		if group := id.ip(); match(group, key) {
			m.act.Moved(group, h.ip, m.hosts.Text(at)+": "+why)
		}
	}
	m.hosts.move(h, at, nil, match)
	h.seenElsewhere = nil
}

// inquiryFailed handles a move that the member has not confirmed.
func (m *Inquirer) inquiryFailed(q *inquiry) {
	h := m.hosts.byIP[q.ip]
	if h == nil || m.hosts.Origin(h.pinned) != q.oldOrigin {
		return
	}
	m.count.Unconfirmed++
	h.seenElsewhere, h.seenElsewhereAt = &q.newOrigin, m.act.Now()
	x := UnconfirmedMove{IP: q.ip, Origin: q.newOrigin, Place: m.hosts.Text(h.pinned), Answer: "none"}
	switch {
	case q.notSentReason != "":
		x.Answer = "no inquiry: " + q.notSentReason
	case q.answeredFromOld:
		x.Answer = "from its old location"
	}
	m.act.Unconfirmed(x)
	if m.policy == config.MoveEvict && !q.answeredFromOld && q.oldOrigin.Port >= 0 && q.notSentReason == "" {
		m.act.Evict(h)
	}
}

// seenElsewhereFor is how long group show reports that a member was seen elsewhere.
const seenElsewhereFor = time.Minute

// SeenElsewhere returns the text about a member that was seen elsewhere lately, or "".
func (m *Inquirer) SeenElsewhere(ip netip.Addr) string {
	h := m.hosts.byIP[ip]
	if h == nil {
		return ""
	}
	s := m.lastSeenElsewhere(h)
	if s == nil {
		return ""
	}
	return fmt.Sprintf("seen at %s %s, and has not confirmed that it moved: if it did, gleam group move-member", m.hosts.ports.Port(s.Port).Name, s.MAC)
}

// lastSeenElsewhere returns where h was seen elsewhere lately, or nil.
func (m *Inquirer) lastSeenElsewhere(h *Host) *dataplane.Origin {
	if h.seenElsewhere == nil || m.act.Now()-h.seenElsewhereAt > seenElsewhereFor {
		return nil
	}
	return h.seenElsewhere
}

// MoveByOperator moves a member at the operator's request. Without a port and a MAC
// address, the member moves to where it was seen last.
func (m *Inquirer) MoveByOperator(h *Host, to *api.MoveMember) error {
	refuse := func(format string, args ...any) error {
		return &api.Error{Reason: api.ReasonMove, Message: fmt.Sprintf(format, args...)}
	}
	way := h.wayTo()
	home := m.hosts.Origin(way)
	switch {
	case home.Port < 0:
		return refuse("the location of %s is not known: see gleamd's log", h.ip)
	case !h.pinned.Known() && to.MAC == "" && h.seenElsewhere == nil:
		return refuse("the location of %s of before the restart is not there: name the port and the MAC address", h.ip)
	}
	s := home
	switch {
	case to.Port == "" && to.MAC == "" && h.seenElsewhere == nil:
		return refuse("%s was not seen anywhere else: name the port, and the MAC address if it has changed", h.ip)
	case to.Port == "" && to.MAC == "":
		s = *h.seenElsewhere
	case to.Port != "":
		s.Port = m.hosts.slotOf(to.Port)
		if s.Port < 0 {
			return &api.Error{Reason: api.ReasonUnknownPort, Message: fmt.Sprintf("there is no port %s: see `gleam port list`", to.Port)}
		}
	}
	if to.MAC != "" {
		s.MAC = to.Address()
	}
	if s.Port != home.Port && !m.sameBridge(&way, s.Port) {
		return refuse("%s is not in the bridge that %s is behind: change the route to it", m.hosts.ports.Port(s.Port).Name, h.ip)
	}
	m.count.Confirmed++
	m.relocate(h, s, "by the operator", everywhere)
	return nil
}

// A host that comes back with another MAC address, behind a link that has stayed up, is in the
// kernel's neighbour table with its old one until the kernel looks after it, which takes 10 to 60 s:
// the entry is stale, and nothing tells the kernel so. Two events tell the switch: a host that does
// not answer where the kernel has it, when a registration asks or a dialler waits, and an authentic
// request from elsewhere. The switch then has the kernel ask all hosts of the link once more. Who answers is
// asked to confirm it as ever: a stranger gains nothing that an ARP packet of his own would not.
// The entries of members are pinned, and stay.

const (
	// reresolveAfter is the number of requests without an answer after which a host is resolved anew:
	// the third one is sent 200 ms after the first.
	reresolveAfter = 3
	// reresolveInterval is the least time between two times of one host.
	reresolveInterval = time.Second
	// maxReresolved bounds the hosts that are resolved anew because of requests from elsewhere, each second.
	maxReresolved = 64
)

// reresolve has the kernel ask all hosts for h's address, with the next lookup.
func (m *Inquirer) reresolve(h *Host) {
	now := m.act.Now()
	if h.isPinned() || !h.location.Known() || h.reresolvedAt > 0 && now-h.reresolvedAt < reresolveInterval {
		return
	}
	h.reresolvedAt, h.reresolve = now, true
	m.hosts.LookUp(h)
}

// Unanswered is told that a host has not answered where the kernel has it.
func (m *Inquirer) Unanswered(ip netip.Addr) {
	if h := m.hosts.Of(ip); h != nil {
		m.reresolve(h)
	}
}

// RequestFrom is told of an authentic request of h from the given origin, whose answer goes
// where the kernel has h.
func (m *Inquirer) RequestFrom(h *Host, from dataplane.Origin) {
	if at := m.hosts.Origin(h.location); at.Port >= 0 && (at.Port != from.Port || at.MAC != from.MAC) && m.reresolvePolicer.Allow(m.act.Now()) {
		m.reresolve(h)
	}
}
