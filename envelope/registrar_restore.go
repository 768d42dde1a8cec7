// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// A registrar that starts again goes on with the groups of the one before it: its driver
// stores them (Saved) and puts them back (Restore). Members and masters have no reason to
// register again.

// SavedGroup is an installed group as a driver stores it.
type SavedGroup struct {
	Registration Registration // the members that have not gone; Lease as granted
	Key          KeyID        // 0: registered by hand
	Transaction  uint32
	Digests      [][32]byte // of the segments of the Register
	Joined       []uint64   // by member: the epoch of its record
	Failed       bool
	Former       []SavedFormer
}

// SavedFormer is a member that has gone, or whose numbers must not be used again.
type SavedFormer struct {
	Record MemberRecord
	Joined uint64
	Reason EndReason // 0: of an earlier epoch, only its numbers count
	Code   rocev2.Syndrome
	PSN    rocev2.PSN
}

// Saved returns what is to be stored of a group. A group over several switches is not
// stored.
func (r *Registrar) Saved(ip netip.Addr) (s SavedGroup, ok bool) {
	g := r.groups[ip]
	if g == nil || g.branch != nil || g.reg.Tree != nil {
		return SavedGroup{}, false
	}
	s = SavedGroup{Registration: g.reg, Key: g.key, Transaction: g.tx, Failed: g.failed}
	s.Registration.Members = slices.Clone(g.reg.Members)
	for _, d := range g.segments {
		s.Digests = append(s.Digests, d)
	}
	for i := range g.reg.Members {
		s.Joined = append(s.Joined, g.joined[g.reg.Members[i].Key()])
	}
	for k, m := range g.gone {
		s.Former = append(s.Former, SavedFormer{m.rec, g.joined[k], m.body.EndReason, m.body.Code, m.body.PSN})
	}
	slices.SortFunc(s.Former, func(a, b SavedFormer) int { return a.Record.IP.Compare(b.Record.IP) })
	for i := range g.usedNumbers {
		m := &g.usedNumbers[i]
		if !slices.ContainsFunc(s.Former, func(f SavedFormer) bool { return f.Record == *m }) {
			s.Former = append(s.Former, SavedFormer{Record: *m})
		}
	}
	return s, true
}

// Restore makes s an installed group, with its whole lease from now on. The Table is not
// called: the caller has installed the group there. Nobody is told.
func (r *Registrar) Restore(now time.Duration, s *SavedGroup) error {
	r.setTime(now)
	ip := s.Registration.Group
	g := &group{reg: s.Registration, key: s.Key, tx: s.Transaction, failed: s.Failed, joined: map[MemberKey]uint64{}, gone: map[MemberKey]leftMember{}}
	g.reg.Members = slices.Clone(s.Registration.Members)
	switch {
	case !r.serves(ip):
		return fmt.Errorf("group %s: %w", ip, &Problem{Reason: NotGroupPrefix})
	case r.served(ip) != nil:
		return fmt.Errorf("group %s: registered already", ip)
	case len(s.Joined) != len(s.Registration.Members):
		return fmt.Errorf("group %s: %d epochs of %d members", ip, len(s.Joined), len(s.Registration.Members))
	case !g.local() && r.auth.Keys[s.Key] == nil && !r.auth.Insecure:
		return fmt.Errorf("group %s: key %d, which it was registered under, is not configured any more", ip, s.Key)
	}
	if p := r.check(g); p != nil {
		return fmt.Errorf("group %s: %w", ip, p)
	}
	for _, d := range s.Digests {
		g.segments = append(g.segments, d)
	}
	for i := range g.reg.Members {
		g.joined[g.reg.Members[i].Key()] = s.Joined[i]
		r.members[g.reg.Members[i].Key()] = ip
	}
	for _, f := range s.Former {
		if f.Reason != 0 {
			k := f.Record.Key()
			g.joined[k] = f.Joined
			g.gone[k] = leftMember{f.Record, &Gone{Member: k, EndReason: f.Reason, Code: f.Code, PSN: f.PSN}}
		}
		g.usedNumbers = append(g.usedNumbers, f.Record)
	}
	r.put(g)
	e := r.epochOf(ip)
	e.accepted = max(e.accepted, g.reg.Epoch)
	if !g.local() {
		r.extendLease(g, now+g.reg.Lease)
	}
	return nil
}

// RestoreEpoch records that epochs of a GroupIP up to newest have been used.
func (r *Registrar) RestoreEpoch(ip netip.Addr, newest uint64) {
	if e := r.epochOf(ip); newest > e.newest() {
		e.rejected, e.problem = newest, Problem{Reason: StaleEpoch, Value: newest}
	}
}

// Newest returns the newest epoch that is known of a GroupIP.
func (r *Registrar) Newest(ip netip.Addr) uint64 { return r.newest(ip) }
