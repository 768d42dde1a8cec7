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
	Digests      [][32]byte // the digests of the segments of the Register
	Joined       []uint64   // the epochs of the members' records, by member
	Failed       bool
	Former       []SavedFormer
	LastNumber   uint32       // the highest number that a member has had
	Branch       *SavedBranch // the branch of a group over several switches
}

// SavedFormer is a member that has gone, or whose numbers must not be used again.
type SavedFormer struct {
	Record MemberRecord
	Joined uint64
	Reason EndReason // 0: of an earlier epoch, only its numbers count
	Code   rocev2.Syndrome
	PSN    rocev2.PSN
}

// Saved returns what is to be stored of a group.
func (r *Registrar) Saved(ip netip.Addr) (s SavedGroup, ok bool) {
	g := r.groups[ip]
	if g == nil {
		return SavedGroup{}, false
	}
	s = SavedGroup{Registration: g.reg, Key: g.key, Transaction: g.tx, Failed: g.failed, LastNumber: g.last, Branch: r.savedBranch(g)}
	s.Registration.Members, s.Registration.Numbers = slices.Clone(g.reg.Members), slices.Clone(g.reg.Numbers)
	if s.Registration.Tree = g.reg.Tree.clone(); s.Registration.Tree != nil {
		s.Registration.Tree.Elsewhere = false
	}
	for _, d := range g.segments {
		s.Digests = append(s.Digests, d)
	}
	for i := range g.reg.Members {
		s.Joined = append(s.Joined, g.joinedIn(i))
	}
	for _, m := range g.gone {
		s.Former = append(s.Former, SavedFormer{m.rec, m.joined, m.body.EndReason, m.body.Code, m.body.PSN})
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
// called: the caller has installed the group there, and may retain the Members of s, which never
// change. Nobody is told.
func (r *Registrar) Restore(now time.Duration, s *SavedGroup) error {
	r.setTime(now)
	ip := s.Registration.Group
	g := &group{reg: s.Registration, key: s.Key, tx: s.Transaction, failed: s.Failed}
	g.reg.Numbers, g.reg.Tree = slices.Clone(s.Registration.Numbers), s.Registration.Tree.clone()
	if g.reg.Origin == 0 {
		g.reg.Origin = g.reg.Epoch
	}
	g.setJoined(slices.Clone(s.Joined))
	for i := range g.reg.Members {
		g.last = max(g.last, g.reg.Number(i))
	}
	g.last = max(g.last, s.LastNumber)
	g.known = g.last
	switch {
	case !r.Serves(ip):
		return fmt.Errorf("group %s: %w", ip, &Problem{Reason: NotGroupPrefix})
	case r.served(ip) != nil:
		return fmt.Errorf("group %s: registered already", ip)
	case len(s.Joined) != len(s.Registration.Members):
		return fmt.Errorf("group %s: %d epochs of %d members", ip, len(s.Joined), len(s.Registration.Members))
	case !g.local() && r.auth.Keys[s.Key] == nil && !r.auth.Insecure:
		return fmt.Errorf("group %s: key %d, which it was registered under, is not configured any more", ip, s.Key)
	}
	if err := r.restoreBranch(g, s.Branch); err != nil {
		return fmt.Errorf("group %s: %w", ip, err)
	}
	if p := r.checkRestored(g); p != nil {
		return fmt.Errorf("group %s: %w", ip, p)
	}
	for _, d := range s.Digests {
		g.segments = append(g.segments, d)
	}
	for i := range g.reg.Members {
		r.members.put(g.reg.Members[i].Key())
	}
	for _, f := range s.Former {
		if f.Reason != 0 {
			k := f.Record.Key()
			if g.gone == nil {
				g.gone = map[MemberKey]leftMember{}
			}
			g.gone[k] = leftMember{f.Record, f.Joined, &Gone{Member: k, EndReason: f.Reason, Code: f.Code, PSN: f.PSN}}
		}
		g.usedNumbers = append(g.usedNumbers, f.Record)
	}
	r.put(g)
	e := r.epochOf(ip)
	e.accepted = max(e.accepted, g.reg.Epoch)
	if !g.local() {
		lease := g.reg.Lease
		if !g.isRoot() {
			lease += lease / leaseSlack
		}
		r.extendLease(g, now+lease)
	}
	r.awaitNeighbours(now, g, s.Branch)
	return nil
}

// checkRestored returns why g, which was installed before, cannot be installed any more.
func (r *Registrar) checkRestored(g *group) *Problem {
	base := g.reg.Base
	defer func() { g.reg.Base = base }()
	g.reg.Base = 0 // of what it updated nothing is here
	if len(g.reg.Members) > r.cfg.MaxMembers {
		return &Problem{Reason: TooManyMembers, Value: uint64(r.cfg.MaxMembers)}
	}
	p := r.check(g)
	if p != nil && (p.Reason == TooFewMembers || p.Reason == NoSender) {
		return nil // the others have left
	}
	return p
}

// RestoreEpoch records that epochs of a GroupIP up to newest have been used.
func (r *Registrar) RestoreEpoch(ip netip.Addr, newest uint64) {
	if e := r.epochOf(ip); newest > e.newest() {
		e.rejected, e.problem = newest, &Problem{Reason: StaleEpoch, Value: newest}
	}
}

// Newest returns the newest epoch that is known of a GroupIP.
func (r *Registrar) Newest(ip netip.Addr) uint64 { return r.newest(ip) }
