// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// digest stands for the contents of one segment.
type digest [sha256.Size]byte

// assembly is a registration of which some segments have arrived.
type assembly struct {
	header   Header // the header of the segment that came first
	group    GroupBody
	parts    [][]MemberRecord // the members by Seq; nil: missing
	digests  []digest
	received int
	members  int               // members in parts
	began    time.Duration     // the time when the first segment came
	expiry   timer[pendingKey] // the time when the assembly is given up
}

// digestOf identifies a segment's contents. It hashes the encoding, which is a function
// of the contents.
func digestOf(m *Message, body *Register) digest {
	b, err := body.append(nil, m.Group.Is6())
	if err != nil { // a parsed segment can be encoded
		panic("envelope: re-encode a parsed segment: " + err.Error())
	}
	return sha256.Sum256(append(b, byte(m.Total>>8), byte(m.Total), byte(m.Seq>>8), byte(m.Seq)))
}

// register processes one segment.
func (r *Registrar) register(now time.Duration, m *Message, body *Register, out *Output) {
	d := digestOf(m, body)
	if g := r.groups[m.Group]; g != nil && g.reg.Epoch == m.Epoch {
		r.answerAgain(m, g, d, out)
		return
	}
	if g := r.locating[m.Group]; g != nil && g.reg.Epoch == m.Epoch {
		if !g.hasSegment(m, d) {
			r.rejectRequest(&m.Header, Problem{Reason: EpochConflict, Value: m.Epoch}, out)
			return
		}
		r.drop(DuplicateMsg, out) // it is answered when its members are located
		return
	}
	if body.Exclusive && body.Base == 0 && (r.groups[m.Group] != nil || r.locating[m.Group] != nil) {
		r.rejectRequest(&m.Header, Problem{Reason: GroupExists}, out)
		return
	}
	if newest := r.newest(m.Group); m.Epoch <= newest {
		p := Problem{Reason: StaleEpoch, Value: newest}
		if e := r.epochs[m.Group]; e != nil && e.problem != nil && m.Epoch == e.rejected && e.rejected > e.accepted {
			p = *e.problem // the same request gets the same answer
		}
		r.rejectRequest(&m.Header, p, out)
		return
	}
	a := r.assemblyFor(m, body, out)
	if a == nil {
		return
	}
	if r.addSegment(now, a, m, body, d, out); a.received < len(a.parts) {
		return
	}
	r.forgetAssembly(pendingKey{m.Group, m.KeyID})
	r.complete(now, a, out)
}

// hasSegment reports whether m, with digest d, is one of the segments of g's
// registration.
func (g *group) hasSegment(m *Message, d digest) bool {
	return int(m.Total) == len(g.segments) && g.segments[m.Seq] == d && m.ReplyTo == g.reg.Master
}

// answerAgain answers a segment of the installed epoch: the master has not received the
// Accept, or the network has made a copy. The lease is not extended, or else a captured
// segment could keep a group alive.
func (r *Registrar) answerAgain(m *Message, g *group, d digest, out *Output) {
	if !g.hasSegment(m, d) {
		r.rejectRequest(&m.Header, Problem{Reason: EpochConflict, Value: r.newest(m.Group)}, out)
		return
	}
	r.drop(DuplicateMsg, out)
	if !g.unaccepted {
		r.acceptRegister(&m.Header, g, out)
	}
}

func (r *Registrar) acceptRegister(h *Header, g *group, out *Output) {
	r.reply(h, &Accept{Request: TypeRegister, Members: len(g.reg.Members), Lease: g.reg.Lease}, out)
}

// assemblyFor returns the assembly that m belongs to, or nil if there is none and none
// can be made.
func (r *Registrar) assemblyFor(m *Message, body *Register, out *Output) *assembly {
	k := pendingKey{m.Group, m.KeyID}
	a := r.pending[k]
	if a != nil && (m.Epoch > a.header.Epoch || m.Epoch == a.header.Epoch && int32(m.Transaction-a.header.Transaction) > 0) {
		a = nil // replaced by a newer one
	} else if a != nil && (m.Epoch != a.header.Epoch || m.Transaction != a.header.Transaction) {
		if m.Epoch == a.header.Epoch && m.ReplyTo.Addr() == a.header.ReplyTo.Addr() {
			r.rejectRequest(&m.Header, Problem{Reason: StaleTransaction, Value: uint64(a.header.Transaction)}, out)
		} else {
			r.drop(StaleMessage, out) // the newer one will soon be complete, or given up
		}
		return nil
	}
	if a != nil {
		return a
	}
	switch {
	case body.TotalMembers > r.cfg.MaxMembers:
		r.refuse(&m.Header, Problem{Reason: TooManyMembers, Value: uint64(r.cfg.MaxMembers)}, out)
		return nil
	case int(m.Total) > max(1, body.TotalMembers):
		r.refuse(&m.Header, Problem{Reason: Malformed}, out) // a segment without a member
		return nil
	case r.pending[k] == nil && (len(r.pending) >= r.cfg.MaxPending || r.pendingUnder[k.key] >= r.shareOfPending()):
		r.drop(PendingFull, out) // the master tries again
		return nil
	}
	a = &assembly{began: r.now, header: m.Header, group: body.GroupBody, parts: make([][]MemberRecord, m.Total), digests: make([]digest, m.Total)}
	r.assemble(k, a)
	return a
}

// addSegment adds m to a, or rejects the whole registration if m contradicts the segments
// received before.
func (r *Registrar) addSegment(now time.Duration, a *assembly, m *Message, body *Register, d digest, out *Output) {
	bad := int(m.Total) != len(a.parts) || m.ReplyTo != a.header.ReplyTo || !sameGroup(&body.GroupBody, &a.group)
	if !bad && a.parts[m.Seq] != nil {
		if a.digests[m.Seq] == d {
			r.drop(DuplicateMsg, out)
			return
		}
		bad = true
	}
	if bad || a.members+len(body.Members) > a.group.TotalMembers || len(body.Members) == 0 && m.Total > 1 {
		r.forgetAssembly(pendingKey{m.Group, m.KeyID})
		r.refuse(&m.Header, Problem{Reason: Malformed}, out)
		return
	}
	a.parts[m.Seq] = append([]MemberRecord{}, body.Members...) // not nil even if empty
	a.digests[m.Seq] = d
	a.received++
	a.members += len(body.Members)
	r.expiries.set(&a.expiry, now+r.cfg.ReassemblyTimeout)
}

// complete turns a full assembly into a registration and tries to install it.
func (r *Registrar) complete(now time.Duration, a *assembly, out *Output) {
	b := &a.group
	g := &group{began: a.began, key: a.header.KeyID, tx: a.header.Transaction, segments: a.digests, reg: b.registration(&a.header)}
	g.reg.Lease = r.leaseFor(g.key, b.Lease)
	g.reg.Members = slices.Concat(a.parts...)
	if len(g.reg.Members) != b.TotalMembers {
		r.refuse(&a.header, Problem{Reason: Malformed}, out)
		return
	}
	r.restrict(g)
	r.tryInstall(now, g, out)
}

// leaseFor returns the lease that is granted under key for a request of d.
func (r *Registrar) leaseFor(key KeyID, d time.Duration) time.Duration {
	if d == 0 {
		d = r.cfg.DefaultLease
	}
	d = min(max(d, r.cfg.MinLease), r.cfg.MaxLease)
	if q := r.cfg.Rights[key].Quota; q.Lease > 0 {
		d = min(d, q.Lease)
	}
	return d
}

// refuse rejects a registration for good. Its epoch is used up, so that no later copy of
// it is accepted after the master has received the rejection.
func (r *Registrar) refuse(h *Header, p Problem, out *Output) {
	r.drop(Rejected, out)
	out.Detail = fmt.Sprintf("%v: %s", h.Type, p.Error())
	e := r.epochOf(h.Group)
	if h.Epoch > e.rejected {
		e.rejected, e.problem = h.Epoch, &p
	}
	r.reportReject(h.Group, h.Epoch, p, out)
	out.attribute(len(out.Events)-1, Actor{h.KeyID, h.ReplyTo})
	r.answerReject(h, p, out)
}

func (r *Registrar) reportReject(ip netip.Addr, epoch uint64, p Problem, out *Output) {
	out.Events = append(out.Events, Event{Kind: RegistrationFailed, Group: ip, Epoch: epoch, Member: p.Member, Err: &p})
}

// reportFailed reports that g, which another switch has asked for, or which was registered by
// hand, is not installed.
func (r *Registrar) reportFailed(g *group, p Problem, out *Output) {
	if g.isRebuild() {
		r.rebuildFailed(g, p, nil, out)
		return
	}
	r.reportReject(g.reg.Group, g.reg.Epoch, p, out)
}

// newest returns the newest epoch of a group in any state but incomplete; the base if
// there is none.
func (r *Registrar) newest(ip netip.Addr) uint64 {
	n := r.cfg.EpochBase
	if e := r.epochs[ip]; e != nil {
		n = e.newest()
	}
	if l := r.locating[ip]; l != nil {
		n = max(n, l.reg.Epoch)
	}
	return n
}

// epochOf returns the record of a group. If there is no room for a new one, the records
// of all groups that no longer exist are deleted and all cookies become void: captured
// requests are challenged.
func (r *Registrar) epochOf(ip netip.Addr) *epochRecord {
	if e := r.epochs[ip]; e != nil {
		return e
	}
	if len(r.epochs) >= r.cfg.MaxEpochs {
		for k := range r.epochs { // the order has no effect: each entry is judged by itself
			if r.groups[k] == nil && r.locating[k] == nil {
				delete(r.epochs, k)
			}
		}
		r.generation++
	}
	e := &epochRecord{}
	r.epochs[ip] = e
	return e
}
