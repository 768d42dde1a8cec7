// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"math"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// A registration waits until its members are located and have confirmed their locations,
// without delaying other registrations: locateMembers requests what is missing and
// returns, and hostLocated puts the group on directory.ready when the last answer has
// come.

// missingAnswer is what a registration waits for at a host: its location, or, with proof,
// its confirmation of the location under the registration's key.
type missingAnswer struct {
	proof bool
	key   envelope.KeyID
}

// pendingRegistration is a registration that waits for answers about its members.
type pendingRegistration struct {
	reg           *envelope.Registration // the registrar's
	hosts         []*host                // the hosts that an answer was missing from at first
	members       []envelope.MemberKey   // one member at each of hosts
	missing       int                    // the number of hosts that an answer is still missing from
	lastRequested time.Duration          // the time when the registrar last asked for a verdict
}

// pendingExpiry is the time at which a pending registration is checked, and forgotten if
// the registrar has given it up.
type pendingExpiry struct {
	registration *pendingRegistration
	at           time.Duration
}

// pendingTTL is the time after which a registration is forgotten that the registrar has
// not asked about again: the registrar has given it up. It takes twice as long at most.
const pendingTTL = 2 * time.Second

// locateMembers returns the location of every member of r. The verdict is VerdictLater if
// the location of a member is not known yet, or not confirmed; it is a rejection that
// names the first member that cannot be served. reg, under key, is r itself or the
// registration whose new members r holds.
func (d *directory) locateMembers(r, reg *envelope.Registration, key envelope.KeyID) ([]locate.Location, envelope.Verdict) {
	now := d.now()
	if a := d.pending[r.Group]; a != nil && a.reg == reg && a.missing > 0 {
		a.lastRequested = now
		return nil, d.verdictLater(a)
	}
	d.forgetPending(r.Group)
	places := make([]locate.Location, len(r.Members))
	var a *pendingRegistration
	wait := func(h *host, m *envelope.MemberRecord, l missingAnswer) {
		if a == nil {
			a = &pendingRegistration{reg: reg, lastRequested: now}
		}
		if _, twice := h.waitingGroups[r.Group]; !twice {
			h.waitingGroups[r.Group] = l
			a.hosts, a.members, a.missing = append(a.hosts, h), append(a.members, m.Key()), a.missing+1
		}
	}
	for i := range r.Members {
		m := &r.Members[i]
		h := d.hosts.guest(m.IP, math.MaxInt, now)
		switch fresh := h.answered && now-h.answeredAt <= maxAnswerAge; {
		case fresh && h.lookupErr == nil && h.location.Known():
			at, proven := d.provenLocation(h, reg, key)
			if err := d.checkAllowed(m.IP, &at); err != nil {
				d.notify(true, "a host may not be a member here", "group", r.Group, "member", m.IP, "error", err)
				d.abandonPending(r.Group, a)
				return nil, rejected(envelope.Problem{Reason: envelope.NotAllowed, Member: m.Key()})
			}
			if places[i] = at; !proven {
				wait(h, m, missingAnswer{true, key})
				d.proofs.open(h, key, now)
			}
		case fresh && h.lookupErr != nil && !errors.Is(h.lookupErr, locate.ErrPending):
			d.notify(true, "a member cannot be located", "group", r.Group, "member", m.IP, "error", h.lookupErr)
			h.answered = false // the next registration causes a new lookup
			d.abandonPending(r.Group, a)
			return nil, rejected(envelope.Problem{Reason: envelope.UnknownMemberLocation, Member: m.Key()})
		default: // no return: the lookups of all members start together
			wait(h, m, missingAnswer{})
			if h.retryIndex < 0 || h.retryAt > now+wantedRetry {
				d.hosts.enqueueUrgent(h)
			}
		}
	}
	if a == nil {
		return places, envelope.Verdict{Kind: envelope.VerdictAccepted}
	}
	d.pending[r.Group] = a
	d.expiries = append(d.expiries, pendingExpiry{a, now + pendingTTL})
	return nil, d.verdictLater(a)
}

// verdictLater returns the verdict for a registration that waits, and names a member that
// it waits for. It marks the hosts as used, so that their lookups are repeated often.
func (d *directory) verdictLater(a *pendingRegistration) envelope.Verdict {
	p := envelope.Problem{Reason: envelope.UnknownMemberLocation}
	for i, h := range a.hosts {
		l, waits := h.waitingGroups[a.reg.Group]
		if !waits {
			continue
		}
		h.lastUsed = a.lastRequested
		if p = (envelope.Problem{Reason: envelope.UnknownMemberLocation, Member: a.members[i]}); l.proof {
			p.Reason, p.Value = envelope.LocationUnconfirmed, macNumber(h.locationFor(l.key).MAC)
		}
	}
	return envelope.Verdict{Kind: envelope.VerdictLater, Problem: p}
}

// abandonPending drops the pending state of a registration that is rejected.
func (d *directory) abandonPending(group netip.Addr, a *pendingRegistration) {
	if a != nil {
		d.pending[group] = a
		d.forgetPending(group)
	}
}

// forgetPending drops the pending state of a group's registration.
func (d *directory) forgetPending(group netip.Addr) {
	if a := d.pending[group]; a != nil {
		for _, h := range a.hosts {
			delete(h.waitingGroups, group)
		}
		delete(d.pending, group)
	}
}

// hostLocated records that h has given the answer l, for all registrations that wait for
// it.
func (d *directory) hostLocated(h *host, l missingAnswer) {
	for group, its := range h.waitingGroups {
		if its != l {
			continue
		}
		delete(h.waitingGroups, group)
		if a := d.pending[group]; a != nil {
			if a.missing--; a.missing == 0 {
				d.ready = append(d.ready, group)
			}
		}
	}
}

// expirePending drops registrations that the registrar has given up, and unused guests.
func (d *directory) expirePending(now time.Duration) {
	d.hosts.now = now
	for len(d.expiries) > 0 && d.expiries[0].at <= now {
		a := d.expiries[0].registration
		d.expiries = d.expiries[1:]
		switch {
		case d.pending[a.reg.Group] != a: // decided, or replaced
		case a.lastRequested+pendingTTL > now:
			d.expiries = append(d.expiries, pendingExpiry{a, now + pendingTTL})
		default:
			d.forgetPending(a.reg.Group)
		}
		d.expireChecked(now)
	}
	d.hosts.expireGuests(now)
}

// hostAnswered records the kernel's answer about h.
func (d *directory) hostAnswered(h *host, at locate.Location, err error, now time.Duration) {
	if err == nil {
		if err = at.Check(); err != nil {
			at = locate.Location{}
		}
	}
	h.lookupPending, h.answered, h.lookupErr, h.answeredAt = false, true, err, now
	if !errors.Is(err, locate.ErrPending) && !sameLocation(at, h.answer) {
		h.answer = at
		d.onAnswer(h)
	}
	switch {
	case errors.Is(err, locate.ErrPending):
		d.hosts.scheduleRetry(h, at, now) // h keeps its old location until the new one is known
	case sameLocation(at, h.location) || !h.isPinned():
		d.hosts.setLocation(h, at) // its dependencies may have changed
		if h.isPinned() {
			d.hosts.wayChanged(h, at)
			d.hosts.onPinChange(h) // the kernel entries that pin it may have gone
		}
	default:
		d.newLocation(h, at, err)
	}
	if h.lookupAgain {
		h.lookupAgain = false
		d.hosts.enqueue(h)
	}
	if !errors.Is(err, locate.ErrPending) {
		d.hostLocated(h, missingAnswer{})
	}
}
