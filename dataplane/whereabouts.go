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

// Registrations wait for the places of their members without keeping anybody else
// waiting: what is not known is asked for, and the group is on a list once the last
// answer is there.

// asking is a registration whose members are asked for.
type asking struct {
	reg     *envelope.Registration // as the registrar has it
	hosts   []*host                // that had no answer
	members []envelope.MemberKey   // one at each of them
	missing int                    // hosts that still have none
	touched time.Duration          // when the registrar asked last
}

// askingTime is how long a registration is waited for that the registrar does not ask for
// any more: it has given it up.
const askingTime = 2 * time.Second

// locateAll finds every member of r. The verdict is VerdictLater if the kernel has
// not said yet where some are, or names the first member that cannot be served. reg is
// the registration that r is, or is the new members of.
func (d *directory) locateAll(r, reg *envelope.Registration) ([]locate.Location, envelope.Verdict) {
	now := d.now()
	if a := d.asking[r.Group]; a != nil && a.reg == reg && a.missing > 0 {
		a.touched = now
		return nil, a.later(now)
	}
	d.giveUp(r.Group)
	places := make([]locate.Location, len(r.Members))
	var a *asking
	for i := range r.Members {
		m := &r.Members[i]
		h := d.hosts.guest(m.IP, math.MaxInt, now)
		switch fresh := h.heard && now-h.since <= freshTime; {
		case fresh && h.err == nil && h.at.Ifindex != 0:
			if err := d.barred(m.IP, &h.at); err != nil {
				d.notify(true, "a host may not be a member here", "group", r.Group, "member", m.IP, "error", err)
				d.abandon(r.Group, a)
				return nil, rejected(envelope.Problem{Reason: envelope.NotAllowed, Member: m.Key()})
			}
			places[i] = h.at
		case fresh && h.err != nil && !errors.Is(h.err, locate.ErrPending):
			d.notify(true, "a member cannot be located", "group", r.Group, "member", m.IP, "error", h.err)
			h.heard = false // asked for anew by the next registration
			d.abandon(r.Group, a)
			return nil, rejected(envelope.Problem{Reason: envelope.UnknownMemberLocation, Member: m.Key()})
		default: // go on: all are asked for at once
			if a == nil {
				a = &asking{reg: reg, touched: now}
			}
			if _, twice := h.waiting[r.Group]; !twice {
				h.waiting[r.Group] = struct{}{}
				a.hosts, a.members, a.missing = append(a.hosts, h), append(a.members, m.Key()), a.missing+1
			}
			if h.index < 0 || h.retry > now+wantedRetry {
				d.hosts.urge(h)
			}
		}
	}
	if a == nil {
		return places, envelope.Verdict{Kind: envelope.VerdictAccepted}
	}
	d.asking[r.Group] = a
	return nil, a.later(now)
}

// later is the verdict on a registration that waits, and names a member that it waits
// for. Hosts are asked for often while it does.
func (a *asking) later(now time.Duration) envelope.Verdict {
	var m envelope.MemberKey
	for i, h := range a.hosts {
		if _, waits := h.waiting[a.reg.Group]; waits {
			h.used, m = now, a.members[i]
		}
	}
	return envelope.Verdict{Kind: envelope.VerdictLater, Problem: envelope.Problem{Reason: envelope.UnknownMemberLocation, Member: m}}
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

// release notes that the registrations that wait for h need not do so any more.
func (d *directory) release(h *host) {
	for group := range h.waiting {
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
		d.release(h)
	}
}
