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

// proven is a place that a host has confirmed.
type proven struct {
	at    locate.Location
	since time.Duration
}

// proofKey names a proof: a host proves its place once for all groups of a key.
type proofKey struct {
	ip  netip.Addr
	key envelope.KeyID
}

// proof is a host that is asked because of registrations.
type proof struct {
	proofKey
	h    *host
	asks [2]placeAsk // where the kernel has it, and where it has answered from otherwise
	sent int         // times
	due  time.Duration
	seen *spot // the last answer came from there, and does not count
	over bool
}

// placeAsk is what a host is asked at one place; the zero value is nowhere.
type placeAsk struct {
	at    locate.Location
	spot  spot
	nonce envelope.Nonce
}

// proofs are those that are under way. They have no clock.
type proofs struct {
	by    map[proofKey]*proof
	turns [len(proofWaits)][]*proof // by the times that they were sent, in the order in which they are due
	pace  bucket
}

// proofWaits are the times after which a question is sent for the first time, and again;
// the last one goes on for as long as a registration waits.
var proofWaits = [...]time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond, 300 * time.Millisecond}

// proofRate is how many hosts a second are asked because of registrations: a port lets as
// many answers in (limits.envelopes_per_port), and as many in a burst.
const proofRate = 2000

func newProofs() *proofs {
	return &proofs{by: make(map[proofKey]*proof), pace: newBucket(proofRate)}
}

// open asks h to prove its place under key, unless it is asked already.
func (x *proofs) open(h *host, key envelope.KeyID, now time.Duration) {
	k := proofKey{h.ip, key}
	if p := x.by[k]; p != nil {
		if p.h == h {
			return
		}
		x.end(p) // of a host that was forgotten meanwhile
	}
	p := &proof{proofKey: k, h: h}
	x.by[k] = p
	x.put(p, now)
}

func (x *proofs) put(p *proof, now time.Duration) {
	i := min(p.sent, len(x.turns)-1)
	p.due = now + proofWaits[i]
	x.turns[i] = append(x.turns[i], p)
}

// end forgets p.
func (x *proofs) end(p *proof) {
	p.over = true
	delete(x.by, p.proofKey)
}

// next says when take has something.
func (x *proofs) next(now time.Duration) (at time.Duration, ok bool) {
	for _, t := range x.turns {
		if len(t) > 0 && (!ok || t[0].due < at) {
			at, ok = t[0].due, true
		}
	}
	return max(at, now+x.pace.wait(now)), ok
}

// take returns a proof whose question is to be sent now, nil if there is none.
func (x *proofs) take(now time.Duration) *proof {
	for i := range x.turns {
		for t := &x.turns[i]; len(*t) > 0 && (*t)[0].due <= now; {
			p := (*t)[0]
			if !p.over && !x.pace.take(now) {
				return nil
			}
			(*t)[0] = nil
			if *t = (*t)[1:]; !p.over {
				return p
			}
		}
	}
	return nil
}

// provenPlace returns where a registration under key finds h, and whether h has confirmed
// that, if it needs to. A confirmation of the same place counts while h is a member, and
// otherwise for a while; one of another place than the kernel's, for a while.
func (d *directory) provenPlace(h *host, r *envelope.Registration, key envelope.KeyID) (at locate.Location, ok bool) {
	if d.follows || !r.Master.IsValid() {
		return h.at, true
	}
	p, ok := h.proven[key]
	switch recent := d.now()-p.since <= guestTime; {
	case !ok:
		return h.at, false
	case samePlace(p.at, h.at):
		return h.at, recent || h.member()
	case recent:
		return p.at, true
	}
	return h.at, false
}

// prove sends the questions that are due.
func (c *control) prove() {
	x := c.dir.proofs
	for {
		now := c.now()
		p := x.take(now)
		if p == nil {
			return
		}
		group, wanted := c.wanting(p)
		if !wanted {
			x.end(p)
			continue
		}
		if h := p.h; h.at.Ifindex != 0 && !samePlace(h.at, p.asks[0].at) {
			p.asks[0] = c.newAsk(h.at) // the kernel has changed its mind, or this is the first time
		}
		for i := range p.asks {
			c.askFor(p, &p.asks[i], group)
		}
		if p.sent++; p.sent >= len(x.turns) {
			c.dir.hosts.urge(p.h) // the tables may be right again
		}
		x.put(p, now)
	}
}

// wanting returns a group whose registration waits for p.
func (c *control) wanting(p *proof) (group netip.Addr, ok bool) {
	for group := range p.h.waiting {
		if key, ok := c.reg.Key(group); ok && key == p.key {
			return group, true
		}
	}
	return netip.Addr{}, false
}

func (c *control) newAsk(at locate.Location) placeAsk {
	a := placeAsk{at: at, spot: c.spotOf(&at)}
	_, _ = rand.Read(a.nonce[:]) // never fails
	return a
}

// askFor sends one question of p in the name of a group.
func (c *control) askFor(p *proof, a *placeAsk, group netip.Addr) {
	if a.at.Ifindex == 0 || a.spot.port < 0 {
		return
	}
	if packet, err := c.reg.Where(group, p.ip, a.nonce); err == nil { // else its registration is over
		c.sendBy(a.spot, &packet)
	}
}

// proves takes in the answer of a host, which came by d, if it is one for a registration.
func (c *control) proves(d *datagram, e *envelope.Event) bool {
	key, ok := c.reg.Key(e.Group)
	p := c.dir.proofs.by[proofKey{e.Member.IP, key}]
	if !ok || p == nil {
		return false
	}
	i := slices.IndexFunc(p.asks[:], func(a placeAsk) bool { return a.at.Ifindex != 0 && a.nonce == e.Nonce })
	if i < 0 {
		return false
	}
	a, s := &p.asks[i], d.spot()
	if s.port != a.spot.port || s.mac != a.spot.mac {
		c.moves.count.Stray++
		p.seen = &s
		c.askElsewhere(p, s, e.Group)
		return true
	}
	p.h.proven[key] = proven{a.at, c.now()}
	c.dir.proofs.end(p)
	c.dir.release(p.h, lack{true, key})
	return true
}

// askElsewhere asks a host where it has answered from, if it can be there: the routes of
// the switch have to lead there.
func (c *control) askElsewhere(p *proof, s spot, group netip.Addr) {
	base := p.asks[0].at
	if c.crew.ports[s.port].ifindex != base.Ifindex && !c.bridged(&base, s.port) {
		return
	}
	if at := c.locationAt(base, s); !samePlace(at, base) && !samePlace(at, p.asks[1].at) {
		p.asks[1] = c.newAsk(at)
		c.askFor(p, &p.asks[1], group)
	}
}

// macValue is a MAC address as the Value of an envelope.Problem.
func macValue(mac net.HardwareAddr) uint64 {
	var b [8]byte
	copy(b[2:], mac)
	return binary.BigEndian.Uint64(b[:])
}

// unproven is a member whose place was not confirmed at registration.
type unproven struct {
	group  netip.Addr
	member envelope.MemberKey
	at     spot   // where it was asked
	answer string // from where one came
}

// sayUnproven tells the operator of a registration that was rejected because a member has
// not confirmed its place. It returns what the journal has of that, "" if the reason was
// another one.
func (c *control) sayUnproven(e *envelope.Event) string {
	var problem *envelope.Problem
	if !errors.As(e.Err, &problem) || problem.Reason != envelope.PlaceUnconfirmed {
		return ""
	}
	p := c.dir.proofs.by[proofKey{e.Member.IP, e.By.Key}]
	if p == nil || p.asks[0].spot.port < 0 {
		return ""
	}
	x := unproven{group: e.Group, member: e.Member, at: p.asks[0].spot, answer: "none"}
	if p.seen != nil {
		x.answer = "from " + c.crew.ports[p.seen.port].name + " " + p.seen.mac.String()
	}
	if suppressed, report := c.moves.unproven.add(c.now(), x.at.port, x); report {
		c.tellUnproven(x, suppressed)
	}
	return fmt.Sprintf("; asked at %s, answer: %s", c.dir.placeString(p.asks[0].at), x.answer)
}

func (c *control) tellUnproven(x unproven, suppressed uint64) {
	c.notify(true, "a member has not confirmed that it is where the kernel has it, and its group's registration is rejected: somebody uses its address, or it answers no envelopes",
		"group", x.group, "member", x.member, "port", c.crew.ports[x.at.port].name, "mac", x.at.mac, "vlan", x.at.vlan, "answer", x.answer,
		"remedy", "run a program of the group at the member before its master registers; ip neigh, bridge fdb show what the kernel has; networks where nobody forges frames: unconfirmed_moves: follow", "suppressed", suppressed)
}
