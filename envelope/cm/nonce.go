// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// A REQ under a key has a nonce of the switch. One without it is answered by a REJ that has it, and
// its program connects again. The switch computes a nonce from a secret, the time, and what the REQ
// names: it stores none. A nonce counts for one member, once: a captured REQ is void as soon as
// its member is one, and after a restart of the switch.

// noncePeriod is how long the switch gives a nonce out; it counts for as long again.
const noncePeriod = 30 * time.Second

// claimant is who shows a nonce.
type claimant struct {
	group, member netip.Addr
	qpn           rocev2.QPN
}

// nonces are those of a Manager.
type nonces struct {
	secret [sha256.Size]byte
	spent  map[claimant]spending
	order  []claimant      // claimants that have shown a nonce in the last two periods, the latest one last
	times  []time.Duration // the times when claimants in order have shown one
}

// spending is how many nonces a claimant has shown, and when the last one.
type spending struct {
	count uint32
	last  time.Duration
}

func newNonces(seed [32]byte) nonces {
	return nonces{secret: sha256.Sum256(append([]byte("nonces\x00"), seed[:]...)), spent: make(map[claimant]spending)}
}

// of returns the nonce of a claimant in a period; it is never 0.
func (n *nonces) of(c claimant, period time.Duration) uint64 {
	be := binary.BigEndian
	group, member := c.group.As16(), c.member.As16()
	b := append(append(make([]byte, 0, 48), group[:]...), member[:]...)
	b = be.AppendUint32(be.AppendUint32(b, uint32(c.qpn)), n.spent[c].count)
	h := hmac.New(sha256.New, n.secret[:])
	h.Write(be.AppendUint64(b, uint64(period)))
	return max(1, be.Uint64(h.Sum(nil)))
}

// now returns the nonce that a claimant is to show.
func (n *nonces) now(c claimant, now time.Duration) uint64 { return n.of(c, now/noncePeriod) }

// counts reports whether a claimant has shown a nonce of this period or of the one before.
func (n *nonces) counts(c claimant, nonce uint64, now time.Duration) bool {
	period := now / noncePeriod
	return nonce == n.of(c, period) || nonce == n.of(c, period-1)
}

// spend makes the nonces void that a claimant has been given.
func (n *nonces) spend(c claimant, now time.Duration) {
	n.spent[c] = spending{n.spent[c].count + 1, now}
	n.order = append(n.order, c)
	n.times = append(n.times, now)
	for n.times[0]+2*noncePeriod <= now { // the nonces from before are void by their age
		if first := n.order[0]; n.spent[first].last == n.times[0] {
			delete(n.spent, first)
		}
		n.order, n.times = n.order[1:], n.times[1:]
	}
}

func claimantOf(q *Request) claimant { return claimant{q.Dst, q.Src, q.QPN} }

// resumption is a REQ that had shown its nonce, and waited, before a restart. It counts as it was, for as long as
// a kernel repeats it: once, and no other REQ in its place.
type resumption struct {
	of    claimant
	psn   rocev2.PSN
	until time.Duration
}

// repeatedFor is how long Linux repeats a REQ.
const repeatedFor = 80 * time.Second

// isFresh reports whether a REQ with authentic private data b has the switch's nonce, or is one that waited before a
// restart.
func (m *Manager) isFresh(p peer, q *Request, b []byte) bool {
	of := claimantOf(q)
	if r, ok := m.resumed[p]; ok && r.of == of && r.psn == q.PSN && m.now < r.until {
		return true
	}
	return m.nonces.counts(of, binary.BigEndian.Uint64(b[privateNonceAt:]), m.now)
}

// challenge answers a REQ without the switch's nonce by a REJ with it. That is no event: every
// program's first REQ gets one.
func (m *Manager) challenge(from, group netip.Addr, x *Message) {
	m.reject(from, group, x, unproven(m.nonces.now(claimantOf(&x.Request), m.now)))
}
