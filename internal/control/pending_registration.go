// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/internal/control/location"
)

// A registration waits until its members are located and have confirmed their locations,
// without delaying other registrations: locateMembers requests what is missing and
// returns, and hostLocated puts the group on directory.ready when the last answer has
// come.

// pendingRegistration is a registration that waits for answers about its members.
type pendingRegistration struct {
	reg           *envelope.Registration // the registrar's
	hosts         []*location.Host       // the hosts that an answer was missing from at first
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
	wait := func(h *location.Host, m *envelope.MemberRecord, l location.Missing) {
		if a == nil {
			a = &pendingRegistration{reg: reg, lastRequested: now}
		}
		if h.Await(r.Group, l) {
			a.hosts, a.members, a.missing = append(a.hosts, h), append(a.members, m.Key()), a.missing+1
		}
	}
	for i := range r.Members {
		m := &r.Members[i]
		h := d.hosts.Candidate(m.IP, now)
		switch fresh := h.Fresh(now); {
		case fresh && h.Err() == nil && h.At().Ifindex != 0:
			at, proven := d.hosts.Proven(h, key, !reg.Master.IsValid(), now)
			if d.checkAllowed(m.IP, at) != nil {
				d.abandonPending(r.Group, a)
				return nil, rejected(envelope.Problem{Reason: envelope.NotAllowed, Member: m.Key()})
			}
			if places[i] = at; !proven {
				wait(h, m, location.Missing{Proof: true, Key: key})
				d.inquirer.Prove(h, key)
			}
		case fresh && h.Err() != nil && !errors.Is(h.Err(), locate.ErrPending):
			h.DropAnswer() // the next registration causes a new lookup
			d.abandonPending(r.Group, a)
			return nil, rejected(envelope.Problem{Reason: envelope.UnknownMemberLocation, Member: m.Key()})
		default: // no return: the lookups of all members start together
			wait(h, m, location.Missing{})
			d.hosts.Request(h, now)
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
		l, waits := h.Awaited(a.reg.Group)
		if !waits {
			continue
		}
		h.Use(a.lastRequested)
		if p = (envelope.Problem{Reason: envelope.UnknownMemberLocation, Member: a.members[i]}); l.Proof {
			p.Reason, p.Value = envelope.LocationUnconfirmed, macNumber(h.LocationFor(l.Key).MAC)
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
			h.AwaitNoMore(group)
		}
		delete(d.pending, group)
	}
}

// memberLocated records that an answer has come that the registration of a group waits for.
func (d *directory) memberLocated(group netip.Addr) {
	if a := d.pending[group]; a != nil {
		if a.missing--; a.missing == 0 {
			d.ready = append(d.ready, group)
		}
	}
}

// expirePending drops registrations that the registrar has given up, and unused guests.
func (d *directory) expirePending(now time.Duration) {
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
	d.hosts.Advance(now)
}

// macNumber returns a MAC address as the Value of an envelope.Problem.
func macNumber(mac net.HardwareAddr) uint64 {
	var b [8]byte
	copy(b[2:], mac)
	return binary.BigEndian.Uint64(b[:])
}
