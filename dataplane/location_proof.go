// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/dataplane/locate"
	"github.com/gleam-rdma/gleam/envelope"
)

// The kernel's tables are what strangers' frames have made them by the time of a
// registration. So a group that is registered by envelope is installed only when each
// member has said, under the registration's key and from there, that it is where the tables
// have it. An answer from elsewhere has the member asked there, too: the place that it
// confirms counts, whatever the tables say. What is registered by hand has no members that
// answer, and the kernel's word counts for it.

// provenLocation is a place that a host has confirmed.
type provenLocation struct {
	location locate.Location
	provenAt time.Duration
}

// proofKey names a proof: a host proves its place once for all groups of a key.
type proofKey struct {
	ip  netip.Addr
	key envelope.KeyID
}

// locationProof is a host that is asked because of registrations.
type locationProof struct {
	proofKey
	host         *host
	asks         [2]locationAsk // where the kernel has it, and where it has answered from otherwise
	timesSent    int            // times
	due          time.Duration
	answeredFrom *origin // the last answer came from there, and does not count
	ended        bool
}

// locationAsk is what a host is asked at one place; the zero value is nowhere.
type locationAsk struct {
	location locate.Location
	spot     origin
	nonce    envelope.Nonce
}

// locationProofs are those that are under way. They have no clock.
type locationProofs struct {
	by      map[proofKey]*locationProof
	steps   [len(proofIntervals)][]*locationProof // by the times that they were sent, in the order in which they are due
	policer policer
}

// proofIntervals are the times after which a question is sent for the first time, and again;
// the last one goes on for as long as a registration waits.
var proofIntervals = [...]time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond, 300 * time.Millisecond}

// maxProofRate is how many hosts a second are asked because of registrations: a port lets as
// many answers in (limits.envelopes_per_port), and as many in a burst.
const maxProofRate = 2000

func newLocationProofs() *locationProofs {
	return &locationProofs{by: make(map[proofKey]*locationProof), policer: newPolicer(maxProofRate)}
}

// open asks h to prove its place under key, unless it is asked already.
func (x *locationProofs) open(h *host, key envelope.KeyID, now time.Duration) {
	k := proofKey{h.ip, key}
	if p := x.by[k]; p != nil {
		if p.host == h {
			return
		}
		x.remove(p) // of a host that was forgotten meanwhile
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

// remove forgets p.
func (x *locationProofs) remove(p *locationProof) {
	p.ended = true
	delete(x.by, p.proofKey)
}

// next says when take has something.
func (x *locationProofs) next(now time.Duration) (at time.Duration, ok bool) {
	for _, t := range x.steps {
		if len(t) > 0 && (!ok || t[0].due < at) {
			at, ok = t[0].due, true
		}
	}
	return max(at, now+x.policer.waitFor(now)), ok
}

// nextDue returns a proof whose question is to be sent now, nil if there is none.
func (x *locationProofs) nextDue(now time.Duration) *locationProof {
	for i := range x.steps {
		for t := &x.steps[i]; len(*t) > 0 && (*t)[0].due <= now; {
			p := (*t)[0]
			if !p.ended && !x.policer.allow(now) {
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

// provenLocation returns where a registration under key finds h, and whether h has confirmed
// that, if it needs to. A confirmation of the same place counts while h is a member, and
// otherwise for a while; one of another place than the kernel's, for a while.
func (d *directory) provenLocation(h *host, r *envelope.Registration, key envelope.KeyID) (at locate.Location, ok bool) {
	if d.kernelDecides || !r.Master.IsValid() {
		return h.location, true
	}
	p, ok := h.proven[key]
	switch recent := d.now()-p.provenAt <= guestTTL; {
	case !ok:
		return h.location, false
	case sameLocation(p.location, h.location):
		return h.location, recent || h.isMember()
	case recent:
		return p.location, true
	}
	return h.location, false
}

// sendProofs sends the questions that are due.
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
		if h := p.host; h.location.Ifindex != 0 && !sameLocation(h.location, p.asks[0].location) {
			p.asks[0] = c.newLocationAsk(h.location) // the kernel has changed its mind, or this is the first time
		}
		for i := range p.asks {
			c.sendLocationAsk(p, &p.asks[i], group)
		}
		if p.timesSent++; p.timesSent >= len(x.steps) {
			c.dir.hosts.enqueueUrgent(p.host) // the tables may be right again
		}
		x.schedule(p, now)
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

func (c *control) newLocationAsk(at locate.Location) locationAsk {
	a := locationAsk{location: at, spot: c.originOf(&at)}
	_, _ = rand.Read(a.nonce[:]) // never fails
	return a
}

// sendLocationAsk sends one question of p in the name of a group.
func (c *control) sendLocationAsk(p *locationProof, a *locationAsk, group netip.Addr) {
	if a.location.Ifindex == 0 || a.spot.port < 0 {
		return
	}
	if packet, err := c.registrar.Where(group, p.ip, a.nonce); err == nil { // else its registration is over
		c.sendBy(a.spot, &packet)
	}
}

// handleProof takes in the answer of a host, which came by d, if it is one for a registration.
func (c *control) handleProof(d *datagram, e *envelope.Event) bool {
	key, ok := c.registrar.Key(e.Group)
	p := c.dir.proofs.by[proofKey{e.Member.IP, key}]
	if !ok || p == nil {
		return false
	}
	i := slices.IndexFunc(p.asks[:], func(a locationAsk) bool { return a.location.Ifindex != 0 && a.nonce == e.Nonce })
	if i < 0 {
		return false
	}
	a, s := &p.asks[i], d.origin()
	if s.port != a.spot.port || s.mac != a.spot.mac {
		c.moves.count.Stray++
		p.answeredFrom = &s
		c.askNewOrigin(p, s, e.Group)
		return true
	}
	p.host.proven[key] = provenLocation{a.location, c.now()}
	c.dir.proofs.remove(p)
	c.dir.hostLocated(p.host, missingAnswer{true, key})
	return true
}

// askNewOrigin asks a host where it has answered from, if it can be there: the routes of
// the switch have to lead there.
func (c *control) askNewOrigin(p *locationProof, s origin, group netip.Addr) {
	base := p.asks[0].location
	if c.workers.ports[s.port].ifindex != base.Ifindex && !c.sameBridge(&base, s.port) {
		return
	}
	if at := c.locationAt(base, s); !sameLocation(at, base) && !sameLocation(at, p.asks[1].location) {
		p.asks[1] = c.newLocationAsk(at)
		c.sendLocationAsk(p, &p.asks[1], group)
	}
}

// macNumber is a MAC address as the Value of an envelope.Problem.
func macNumber(mac net.HardwareAddr) uint64 {
	var b [8]byte
	copy(b[2:], mac)
	return binary.BigEndian.Uint64(b[:])
}

// unprovenLocation is a member whose place was not confirmed at registration.
type unprovenLocation struct {
	group        netip.Addr
	member       envelope.MemberKey
	askedAt      origin // where it was asked
	answeredFrom string // from where one came
}

// unprovenText tells the operator of a registration that was rejected because a member has
// not confirmed its place. It returns what the journal has of that, "" if the reason was
// another one.
func (c *control) unprovenText(e *envelope.Event) string {
	var problem *envelope.Problem
	if !errors.As(e.Err, &problem) || problem.Reason != envelope.PlaceUnconfirmed {
		return ""
	}
	p := c.dir.proofs.by[proofKey{e.Member.IP, e.By.Key}]
	if p == nil || p.asks[0].spot.port < 0 {
		return ""
	}
	x := unprovenLocation{group: e.Group, member: e.Member, askedAt: p.asks[0].spot, answeredFrom: "none"}
	if p.answeredFrom != nil {
		x.answeredFrom = "from " + c.workers.ports[p.answeredFrom.port].name + " " + p.answeredFrom.mac.String()
	}
	if suppressed, report := c.moves.unproven.add(c.now(), x.askedAt.port, x); report {
		c.logUnproven(x, suppressed)
	}
	return fmt.Sprintf("; asked at %s, answer: %s", c.dir.locationText(p.asks[0].location), x.answeredFrom)
}

func (c *control) logUnproven(x unprovenLocation, suppressed uint64) {
	c.notify(true, "a member has not confirmed that it is where the kernel has it, and its group's registration is rejected: somebody uses its address, or it answers no envelopes",
		"group", x.group, "member", x.member, "port", c.workers.ports[x.askedAt.port].name, "mac", x.askedAt.mac, "vlan", x.askedAt.vlan, "answer", x.answeredFrom,
		"remedy", "run a program of the group at the member before its master registers; ip neigh, bridge fdb show what the kernel has; networks where nobody forges frames: unconfirmed_moves: follow", "suppressed", suppressed)
}
