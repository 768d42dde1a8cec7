// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"crypto/rand"
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
	host         *Host
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
func (x *locationProofs) open(h *Host, key envelope.KeyID, now time.Duration) {
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

// Proven returns the location of h for a registration under key, which may be one by hand, and whether h
// has confirmed it, if it must. A confirmation of its place in the groups of that key counts while
// it is in one, and otherwise for guestTTL; a confirmation of another location counts for guestTTL.
func (x *Hosts) Proven(h *Host, key envelope.KeyID, byHand bool, now time.Duration) (at locate.Location, ok bool) {
	if x.kernelDecides {
		return h.location, true
	}
	own := h.places[key]
	if byHand {
		if own != nil && own.at.Known() {
			return own.at, true
		}
		return h.location, true
	}
	at = h.LocationFor(key)
	p, ok := h.proven[key]
	switch recent := now-p.provenAt <= guestTTL; {
	case !ok:
		return at, false
	case Same(p.location, at):
		return at, recent || own != nil
	case recent:
		return p.location, true
	}
	return at, false
}

// SendProofs sends the requests that are due.
func (m *Inquirer) SendProofs() {
	x := m.proofs
	for {
		now := m.act.Now()
		p := x.nextDue(now)
		if p == nil {
			return
		}
		group, wanted := m.waitingGroup(p)
		if !wanted {
			x.remove(p)
			continue
		}
		m.renewLocationRequest(p) // the kernel's location has changed, or this is the first request
		for i := range p.requests {
			m.sendLocationRequest(p, &p.requests[i], group)
		}
		if s := m.lastSeenElsewhere(p.host); s != nil && p.answeredFrom == nil {
			m.requestAtNewOrigin(p, *s, group) // the kernel may hold the host where another key's holder says that it is
		}
		if p.timesSent++; p.timesSent == reresolveAfter {
			m.reresolve(p.host)
		} else if p.timesSent >= len(x.steps) {
			m.hosts.enqueueUrgent(p.host) // the tables may have been corrected
		}
		x.schedule(p, now)
	}
}

// renewLocationRequest has p request the location that its host has now, and reports whether that is
// another one.
func (m *Inquirer) renewLocationRequest(p *locationProof) bool {
	at := p.host.LocationFor(p.key)
	if !at.Known() || Same(at, p.requests[0].location) {
		return false
	}
	p.requests[0] = m.newLocationRequest(at)
	return true
}

// requestAnew has the proofs of h that are under way go where the kernel has h now.
func (m *Inquirer) requestAnew(h *Host) {
	for group, l := range h.waitingGroups {
		p := m.proofs.by[proofKey{h.ip, l.Key}]
		if l.Proof && p != nil && p.timesSent > 0 && m.renewLocationRequest(p) {
			m.sendLocationRequest(p, &p.requests[0], group)
		}
	}
}

// waitingGroup returns a group whose registration waits for p.
func (m *Inquirer) waitingGroup(p *locationProof) (group netip.Addr, ok bool) {
	for group := range p.host.waitingGroups {
		if key, ok := m.registrar.Key(group); ok && key == p.key {
			return group, true
		}
	}
	return netip.Addr{}, false
}

func (m *Inquirer) newLocationRequest(at locate.Location) locationRequest {
	a := locationRequest{location: at, origin: m.hosts.Origin(at)}
	_, _ = rand.Read(a.nonce[:]) // never fails
	return a
}

// sendLocationRequest sends a request of p by an envelope of the given group.
func (m *Inquirer) sendLocationRequest(p *locationProof, a *locationRequest, group netip.Addr) {
	if !a.location.Known() || a.origin.Port < 0 {
		return
	}
	if packet, err := m.registrar.Where(group, p.ip, a.nonce); err == nil { // an error: its registration is over
		m.act.Send(a.origin, &packet)
	}
}

// handleProof serves the answer e of a host, which came from the given origin. It returns false if the
// answer belongs to no proof.
func (m *Inquirer) handleProof(from dataplane.Origin, e *envelope.Event) bool {
	key, ok := m.registrar.Key(e.Group)
	p := m.proofs.by[proofKey{e.Member.IP, key}]
	if !ok || p == nil {
		return false
	}
	i := slices.IndexFunc(p.requests[:], func(a locationRequest) bool { return a.location.Known() && a.nonce == e.Nonce })
	if i < 0 {
		return false
	}
	a, s := &p.requests[i], from
	if s.Port != a.origin.Port || s.MAC != a.origin.MAC {
		m.count.Stray++
		p.answeredFrom = &s
		m.requestAtNewOrigin(p, s, e.Group)
		return true
	}
	p.host.proven[key] = provenLocation{a.location, m.act.Now()}
	m.proofs.remove(p)
	m.hosts.located(p.host, Missing{true, key})
	return true
}

// requestAtNewOrigin asks a host at the origin of its answer, if the host can be there: the
// routes of the switch must lead there.
func (m *Inquirer) requestAtNewOrigin(p *locationProof, s dataplane.Origin, group netip.Addr) {
	base := p.requests[0].location
	if m.hosts.ports.Port(s.Port).Ifindex != base.Ifindex && !m.sameBridge(&base, s.Port) {
		return
	}
	if at := m.locationAt(base, s); at.Known() && !Same(at, base) && !Same(at, p.requests[1].location) {
		p.requests[1] = m.newLocationRequest(at)
		m.sendLocationRequest(p, &p.requests[1], group)
	}
}

// Prove has h confirm its location under a key, unless it is asked already.
func (m *Inquirer) Prove(h *Host, key envelope.KeyID) { m.proofs.open(h, key, m.act.Now()) }

// Unproven returns where a host was asked for its location under a key that it has not confirmed, and the origin of its
// answer, "none" without one; ok is false if it is not asked.
func (m *Inquirer) Unproven(ip netip.Addr, key envelope.KeyID) (at dataplane.Origin, place, answer string, ok bool) {
	p := m.proofs.by[proofKey{ip, key}]
	if p == nil || p.requests[0].origin.Port < 0 {
		return at, "", "", false
	}
	answer = "none"
	if s := p.answeredFrom; s != nil {
		answer = "from " + m.hosts.ports.Port(s.Port).Name + " " + s.MAC.String()
	}
	return p.requests[0].origin, m.hosts.Text(p.requests[0].location), answer, true
}
