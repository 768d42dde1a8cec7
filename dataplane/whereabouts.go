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

// lack is what a registration waits for at a host: that its place is known, or that the
// host has confirmed it under the registration's key.
type lack struct {
	proof bool
	key   envelope.KeyID
}

// asking is a registration whose members are asked for.
type asking struct {
	reg     *envelope.Registration // as the registrar has it
	hosts   []*host                // of whom something was lacking
	members []envelope.MemberKey   // one at each of them
	missing int                    // hosts of whom it still is
	touched time.Duration          // when the registrar asked last
}

// askingTime is how long a registration is waited for that the registrar does not ask for
// any more: it has given it up.
const askingTime = 2 * time.Second

// locateAll finds every member of r. The verdict is VerdictLater if the kernel has
// not said yet where some are, or some have not confirmed it, or names the first member
// that cannot be served. reg is the registration that r is, or is the new members of,
// under key.
func (d *directory) locateAll(r, reg *envelope.Registration, key envelope.KeyID) ([]locate.Location, envelope.Verdict) {
	now := d.now()
	if a := d.asking[r.Group]; a != nil && a.reg == reg && a.missing > 0 {
		a.touched = now
		return nil, d.later(a)
	}
	d.giveUp(r.Group)
	places := make([]locate.Location, len(r.Members))
	var a *asking
	wait := func(h *host, m *envelope.MemberRecord, l lack) {
		if a == nil {
			a = &asking{reg: reg, touched: now}
		}
		if _, twice := h.waiting[r.Group]; !twice {
			h.waiting[r.Group] = l
			a.hosts, a.members, a.missing = append(a.hosts, h), append(a.members, m.Key()), a.missing+1
		}
	}
	for i := range r.Members {
		m := &r.Members[i]
		h := d.hosts.guest(m.IP, math.MaxInt, now)
		switch fresh := h.heard && now-h.since <= freshTime; {
		case fresh && h.err == nil && h.at.Ifindex != 0:
			at, proven := d.provenPlace(h, reg, key)
			if err := d.barred(m.IP, &at); err != nil {
				d.notify(true, "a host may not be a member here", "group", r.Group, "member", m.IP, "error", err)
				d.abandon(r.Group, a)
				return nil, rejected(envelope.Problem{Reason: envelope.NotAllowed, Member: m.Key()})
			}
			if places[i] = at; !proven {
				wait(h, m, lack{true, key})
				d.proofs.open(h, key, now)
			}
		case fresh && h.err != nil && !errors.Is(h.err, locate.ErrPending):
			d.notify(true, "a member cannot be located", "group", r.Group, "member", m.IP, "error", h.err)
			h.heard = false // asked for anew by the next registration
			d.abandon(r.Group, a)
			return nil, rejected(envelope.Problem{Reason: envelope.UnknownMemberLocation, Member: m.Key()})
		default: // go on: all are asked for at once
			wait(h, m, lack{})
			if h.index < 0 || h.retry > now+wantedRetry {
				d.hosts.urge(h)
			}
		}
	}
	if a == nil {
		return places, envelope.Verdict{Kind: envelope.VerdictAccepted}
	}
	d.asking[r.Group] = a
	return nil, d.later(a)
}

// later is the verdict on a registration that waits, and names a member that it waits
// for. Hosts are asked for often while it does.
func (d *directory) later(a *asking) envelope.Verdict {
	p := envelope.Problem{Reason: envelope.UnknownMemberLocation}
	for i, h := range a.hosts {
		l, waits := h.waiting[a.reg.Group]
		if !waits {
			continue
		}
		h.used = a.touched
		if p = (envelope.Problem{Reason: envelope.UnknownMemberLocation, Member: a.members[i]}); l.proof {
			p.Reason, p.Value = envelope.PlaceUnconfirmed, macValue(h.at.MAC)
		}
	}
	return envelope.Verdict{Kind: envelope.VerdictLater, Problem: p}
}

// abandon forgets what a registration that is refused was about to wait for.
func (d *directory) abandon(group netip.Addr, a *asking) {
	if a != nil {
		d.asking[group] = a
		d.giveUp(group)
	}
}

// giveUp forgets that the registration of a group waits.
func (d *directory) giveUp(group netip.Addr) {
	if a := d.asking[group]; a != nil {
		for _, h := range a.hosts {
			delete(h.waiting, group)
		}
		delete(d.asking, group)
	}
}

// release notes that the registrations that wait for h because of l need not do so any
// more.
func (d *directory) release(h *host, l lack) {
	for group, its := range h.waiting {
		if its != l {
			continue
		}
		delete(h.waiting, group)
		if a := d.asking[group]; a != nil {
			if a.missing--; a.missing == 0 {
				d.ready = append(d.ready, group)
			}
		}
	}
}

// sweep forgets registrations that the registrar has given up, and guests.
func (d *directory) sweep(now time.Duration) {
	d.hosts.now = now
	if now >= d.swept+askingTime {
		d.swept = now
		for group, a := range d.asking {
			if now-a.touched > askingTime {
				d.giveUp(group)
			}
		}
	}
	d.hosts.expire(now)
}

// answered takes in what the kernel says of h.
func (d *directory) answered(h *host, at locate.Location, err error, now time.Duration) {
	h.asked, h.heard, h.err, h.since = false, true, err, now
	switch {
	case errors.Is(err, locate.ErrPending):
		d.hosts.wait(h, at, now) // it keeps its old place until the new one is known
	case samePlace(at, h.at) || !h.member():
		d.hosts.place(h, at) // what it depends on may be something else
		if h.member() {
			d.hosts.pinned(h) // what holds it there may have gone
		}
	default:
		d.candidate(h, at, err)
	}
	if h.again {
		h.again = false
		d.hosts.ask(h)
	}
	if !errors.Is(err, locate.ErrPending) {
		d.release(h, lack{})
	}
}
