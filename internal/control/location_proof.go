// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// The kernel's tables may have been changed by anyone's frames before a registration. So
// a group that is registered by envelope is installed only when each member has
// confirmed, under the registration's key and from that location, that it is where the
// tables have it. An answer from another origin makes the switch ask the member there
// too: the location that the member confirms counts, whatever the tables say. Members of
// a group that is registered by hand do not answer, and the kernel's tables decide where
// they are.

// provenLocation is a location that a host has confirmed.
type provenLocation struct {
	location locate.Location
	provenAt time.Duration
}

// proofKey identifies a proof: a host proves its location once for all groups of a key.
type proofKey struct {
	ip  netip.Addr
	key envelope.KeyID
}

// locationProof is the state of a host that is asked for its location because of
// registrations.
type locationProof struct {
	proofKey
	host         *host
	requests     [2]locationRequest // requests at the location of its place or the kernel's, and at another one that the host has answered from or was seen at
	timesSent    int                // how many times the request was sent
	due          time.Duration
	answeredFrom *dataplane.Origin // origin of the last answer that did not count
	ended        bool
}

// locationRequest is a request to a host at one location; the zero value is none.
type locationRequest struct {
	location locate.Location
	origin   dataplane.Origin
	nonce    envelope.Nonce
}

// locationProofs are the proofs that are under way. It does not read a clock.
type locationProofs struct {
	by      map[proofKey]*locationProof
	steps   [len(proofIntervals)][]*locationProof // proofs by timesSent, each list in the order of due
	policer dataplane.Policer
}

// proofIntervals are the times before a request is sent for the first time, the second,
// and so on; the last one is repeated for as long as a registration waits.
var proofIntervals = [...]time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond, 300 * time.Millisecond}

// maxProofRate bounds the hosts that are asked per second because of registrations, and
// the burst: a port admits as many answers (limits.envelopes_per_port).
const maxProofRate = 2000

func newLocationProofs() *locationProofs {
	return &locationProofs{by: make(map[proofKey]*locationProof), policer: dataplane.NewPolicer(maxProofRate)}
}

// open asks h to prove its location under key, unless that proof is under way.
func (x *locationProofs) open(h *host, key envelope.KeyID, now time.Duration) {
	k := proofKey{h.ip, key}
	if p := x.by[k]; p != nil {
		if p.host == h {
			return
		}
		x.remove(p) // of a host that has been forgotten since
	}
	p := &locationProof{proofKey: k, host: h}
	x.by[k] = p
	x.schedule(p, now)
}

func (x *locationProofs) schedule(p *locationProof, now time.Duration) {
	i := min(p.timesSent, len(x.steps)-1)
	p.due = now + proofIntervals[i]
	x.steps[i] = append(x.steps[i], p)
}

// remove ends p.
func (x *locationProofs) remove(p *locationProof) {
	p.ended = true
	delete(x.by, p.proofKey)
}

// next returns when nextDue returns a proof next; ok is false if none is under way.
func (x *locationProofs) next(now time.Duration) (at time.Duration, ok bool) {
	for _, t := range x.steps {
		if len(t) > 0 && (!ok || t[0].due < at) {
			at, ok = t[0].due, true
		}
	}
	return max(at, now+x.policer.WaitFor(now)), ok
}

// nextDue returns a proof whose request must be sent now, or nil if there is none.
func (x *locationProofs) nextDue(now time.Duration) *locationProof {
	for i := range x.steps {
		for t := &x.steps[i]; len(*t) > 0 && (*t)[0].due <= now; {
			p := (*t)[0]
			if !p.ended && !x.policer.Allow(now) {
				return nil
			}
			(*t)[0] = nil
			if *t = (*t)[1:]; !p.ended {
				return p
			}
		}
	}
	return nil
}

// provenLocation returns the location of h for a registration under key, and whether h
// has confirmed it, if it must. A confirmation of its place in the groups of that key counts while
// it is in one, and otherwise for guestTTL; a confirmation of another location counts for guestTTL.
func (d *directory) provenLocation(h *host, r *envelope.Registration, key envelope.KeyID) (at locate.Location, ok bool) {
	if d.kernelDecides {
		return h.location, true
	}
	own := h.places[key]
	if !r.Master.IsValid() {
		if own != nil && own.at.Known() {
			return own.at, true
		}
		return h.location, true
	}
	at = h.locationFor(key)
	p, ok := h.proven[key]
	switch recent := d.now()-p.provenAt <= guestTTL; {
	case !ok:
		return at, false
	case sameLocation(p.location, at):
		return at, recent || own != nil
	case recent:
		return p.location, true
	}
	return at, false
}

// sendProofs sends the requests that are due.
func (c *control) sendProofs() {
	x := c.dir.proofs
	for {
		now := c.now()
		p := x.nextDue(now)
		if p == nil {
			return
		}
		group, wanted := c.waitingGroup(p)
		if !wanted {
			x.remove(p)
			continue
		}
		c.renewLocationRequest(p) // the kernel's location has changed, or this is the first request
		for i := range p.requests {
			c.sendLocationRequest(p, &p.requests[i], group)
		}
		if s := c.lastSeenElsewhere(p.host); s != nil && p.answeredFrom == nil {
			c.requestAtNewOrigin(p, *s, group) // the kernel may hold the host where another key's holder says that it is
		}
		if p.timesSent++; p.timesSent == reresolveAfter {
			c.reresolve(p.host)
		} else if p.timesSent >= len(x.steps) {
			c.dir.hosts.enqueueUrgent(p.host) // the tables may have been corrected
		}
		x.schedule(p, now)
	}
}

// renewLocationRequest has p request the location that its host has now, and reports whether that is
// another one.
func (c *control) renewLocationRequest(p *locationProof) bool {
	at := p.host.locationFor(p.key)
	if !at.Known() || sameLocation(at, p.requests[0].location) {
		return false
	}
	p.requests[0] = c.newLocationRequest(at)
	return true
}

// requestAnew has the proofs of h that are under way go where the kernel has h now.
func (c *control) requestAnew(h *host) {
	for group, l := range h.waitingGroups {
		p := c.dir.proofs.by[proofKey{h.ip, l.key}]
		if l.proof && p != nil && p.timesSent > 0 && c.renewLocationRequest(p) {
			c.sendLocationRequest(p, &p.requests[0], group)
		}
	}
}

// waitingGroup returns a group whose registration waits for p.
func (c *control) waitingGroup(p *locationProof) (group netip.Addr, ok bool) {
	for group := range p.host.waitingGroups {
		if key, ok := c.registrar.Key(group); ok && key == p.key {
			return group, true
		}
	}
	return netip.Addr{}, false
}

func (c *control) newLocationRequest(at locate.Location) locationRequest {
	a := locationRequest{location: at, origin: c.dir.originOf(&at)}
	_, _ = rand.Read(a.nonce[:]) // never fails
	return a
}

// sendLocationRequest sends a request of p by an envelope of the given group.
func (c *control) sendLocationRequest(p *locationProof, a *locationRequest, group netip.Addr) {
	if !a.location.Known() || a.origin.Port < 0 {
		return
	}
	if packet, err := c.registrar.Where(group, p.ip, a.nonce); err == nil { // an error: its registration is over
		c.sendBy(a.origin, &packet)
	}
}

// handleProof serves the answer e of a host, which came from the given origin. It returns false if the
// answer belongs to no proof.
func (c *control) handleProof(from dataplane.Origin, e *envelope.Event) bool {
	key, ok := c.registrar.Key(e.Group)
	p := c.dir.proofs.by[proofKey{e.Member.IP, key}]
	if !ok || p == nil {
		return false
	}
	i := slices.IndexFunc(p.requests[:], func(a locationRequest) bool { return a.location.Known() && a.nonce == e.Nonce })
	if i < 0 {
		return false
	}
	a, s := &p.requests[i], from
	if s.Port != a.origin.Port || s.MAC != a.origin.MAC {
		c.moves.count.Stray++
		p.answeredFrom = &s
		c.requestAtNewOrigin(p, s, e.Group)
		return true
	}
	p.host.proven[key] = provenLocation{a.location, c.now()}
	c.dir.proofs.remove(p)
	c.dir.hostLocated(p.host, missingAnswer{true, key})
	return true
}

// requestAtNewOrigin asks a host at the origin of its answer, if the host can be there: the
// routes of the switch must lead there.
func (c *control) requestAtNewOrigin(p *locationProof, s dataplane.Origin, group netip.Addr) {
	base := p.requests[0].location
	if c.ports[s.Port].Ifindex != base.Ifindex && !c.sameBridge(&base, s.Port) {
		return
	}
	if at := c.locationAt(base, s); at.Known() && !sameLocation(at, base) && !sameLocation(at, p.requests[1].location) {
		p.requests[1] = c.newLocationRequest(at)
		c.sendLocationRequest(p, &p.requests[1], group)
	}
}

// macNumber returns a MAC address as the Value of an envelope.Problem.
func macNumber(mac net.HardwareAddr) uint64 {
	var b [8]byte
	copy(b[2:], mac)
	return binary.BigEndian.Uint64(b[:])
}

// unprovenLocation describes a member that did not confirm its location at registration.
type unprovenLocation struct {
	group        netip.Addr
	member       envelope.MemberKey
	requestedAt  dataplane.Origin // where the request was sent
	answeredFrom string           // origin of an answer, "none" without one
}

// unprovenText tells the operator of a registration that was rejected because a member
// has not confirmed its location. It returns the text for the journal, "" if the
// registration was rejected for another reason.
func (c *control) unprovenText(e *envelope.Event) string {
	var problem *envelope.Problem
	if !errors.As(e.Err, &problem) || problem.Reason != envelope.LocationUnconfirmed {
		return ""
	}
	p := c.dir.proofs.by[proofKey{e.Member.IP, e.By.Key}]
	if p == nil || p.requests[0].origin.Port < 0 {
		return ""
	}
	x := unprovenLocation{group: e.Group, member: e.Member, requestedAt: p.requests[0].origin, answeredFrom: "none"}
	if p.answeredFrom != nil {
		x.answeredFrom = "from " + c.ports[p.answeredFrom.Port].Name + " " + p.answeredFrom.MAC.String()
	}
	if suppressed, report := c.moves.unproven.add(c.now(), x.requestedAt.Port, x); report {
		c.logUnproven(x, suppressed)
	}
	return fmt.Sprintf("; inquiry at %s, answer: %s", c.dir.locationText(p.requests[0].location), x.answeredFrom)
}

func (c *control) logUnproven(x unprovenLocation, suppressed uint64) {
	c.notify(true, "a member has not confirmed that it is where the kernel has it, and its group's registration is rejected: somebody uses its address, or it answers no envelopes",
		"group", x.group, "member", x.member, "port", c.ports[x.requestedAt.Port].Name, "mac", x.requestedAt.MAC, "vlan", x.requestedAt.VLAN, "answer", x.answeredFrom,
		"remedy", "run a program of the group at the member before its master registers; ip neigh, bridge fdb show what the kernel has; networks where nobody forges frames: unconfirmed_moves: follow", "suppressed", suppressed)
}
