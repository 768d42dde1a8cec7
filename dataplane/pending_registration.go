// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"errors"
	"math"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/dataplane/locate"
	"github.com/gleam-rdma/gleam/envelope"
)

// Registrations wait for the places of their members, and for what these say of them,
// without keeping anybody else waiting: what is not known is asked for, and the group is
// on a list once the last answer is there.

// missingAnswer is what a registration waits for at a host: that its place is known, or that the
// host has confirmed it under the registration's key.
type missingAnswer struct {
	proof bool
	key   envelope.KeyID
}

// pendingRegistration is a registration whose members are asked for.
type pendingRegistration struct {
	reg     *envelope.Registration // as the registrar has it
	hosts   []*host                // of whom something was lacking
	members []envelope.MemberKey   // one at each of them
	missing int                    // hosts of whom it still is
	askedAt time.Duration          // when the registrar asked last
}

// pendingTTL is how long a registration is waited for that the registrar does not ask for
// any more: it has given it up.
const pendingTTL = 2 * time.Second

// locateMembers finds every member of r. The verdict is VerdictLater if the kernel has
// not said yet where some are, or some have not confirmed it, or names the first member
// that cannot be served. reg is the registration that r is, or is the new members of,
// under key.
func (d *directory) locateMembers(r, reg *envelope.Registration, key envelope.KeyID) ([]locate.Location, envelope.Verdict) {
	now := d.now()
	if a := d.pending[r.Group]; a != nil && a.reg == reg && a.missing > 0 {
		a.askedAt = now
		return nil, d.verdictLater(a)
	}
	d.forgetPending(r.Group)
	places := make([]locate.Location, len(r.Members))
	var a *pendingRegistration
	wait := func(h *host, m *envelope.MemberRecord, l missingAnswer) {
		if a == nil {
			a = &pendingRegistration{reg: reg, askedAt: now}
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
		case fresh && h.lookupErr == nil && h.location.Ifindex != 0:
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
			h.answered = false // asked for anew by the next registration
			d.abandonPending(r.Group, a)
			return nil, rejected(envelope.Problem{Reason: envelope.UnknownMemberLocation, Member: m.Key()})
		default: // go on: all are asked for at once
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
	return nil, d.verdictLater(a)
}

// verdictLater is the verdict on a registration that waits, and names a member that it waits
// for. Hosts are asked for often while it does.
func (d *directory) verdictLater(a *pendingRegistration) envelope.Verdict {
	p := envelope.Problem{Reason: envelope.UnknownMemberLocation}
	for i, h := range a.hosts {
		l, waits := h.waitingGroups[a.reg.Group]
		if !waits {
			continue
		}
		h.lastUsed = a.askedAt
		if p = (envelope.Problem{Reason: envelope.UnknownMemberLocation, Member: a.members[i]}); l.proof {
			p.Reason, p.Value = envelope.PlaceUnconfirmed, macNumber(h.location.MAC)
		}
	}
	return envelope.Verdict{Kind: envelope.VerdictLater, Problem: p}
}

// abandonPending forgets what a registration that is refused was about to wait for.
func (d *directory) abandonPending(group netip.Addr, a *pendingRegistration) {
	if a != nil {
		d.pending[group] = a
		d.forgetPending(group)
	}
}

// forgetPending forgets that the registration of a group waits.
func (d *directory) forgetPending(group netip.Addr) {
	if a := d.pending[group]; a != nil {
		for _, h := range a.hosts {
			delete(h.waitingGroups, group)
		}
		delete(d.pending, group)
	}
}

// hostLocated notes that the registrations that wait for h because of l need not do so any
// more.
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

// expirePending forgets registrations that the registrar has given up, and guests.
func (d *directory) expirePending(now time.Duration) {
	d.hosts.now = now
	if now >= d.sweptAt+pendingTTL {
		d.sweptAt = now
		for group, a := range d.pending {
			if now-a.askedAt > pendingTTL {
				d.forgetPending(group)
			}
		}
	}
	d.hosts.expireGuests(now)
}

// hostAnswered takes in what the kernel says of h.
func (d *directory) hostAnswered(h *host, at locate.Location, err error, now time.Duration) {
	h.lookupPending, h.answered, h.lookupErr, h.answeredAt = false, true, err, now
	switch {
	case errors.Is(err, locate.ErrPending):
		d.hosts.scheduleRetry(h, at, now) // it keeps its old place until the new one is known
	case sameLocation(at, h.location) || !h.isMember():
		d.hosts.setLocation(h, at) // what it depends on may be something else
		if h.isMember() {
			d.hosts.onPinChange(h) // what holds it there may have gone
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
