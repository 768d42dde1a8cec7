// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

// A group belongs to the key that it was registered under, and one that was registered by
// hand to the operator. Requests under other keys change nothing in it: they are rejected
// with OtherKey before any state is stored, and use up no epoch.

// owns reports whether requests under key may change g.
func (r *Registrar) owns(key KeyID, g *group) bool {
	return !g.local() && g.key == key
}

// otherOwner reports whether the group that m is about, installed or being located,
// belongs to another key than m's.
func (r *Registrar) otherOwner(m *Message) bool {
	if g := r.groups[m.Group]; g != nil {
		return !r.owns(m.KeyID, g)
	}
	g := r.locating[m.Group]
	return g != nil && !r.owns(m.KeyID, g)
}

// shareOfPending returns the number of registrations under one key that may be assembled
// at a time: half of all, so that no key's incomplete registrations keep those of other
// keys out.
func (r *Registrar) shareOfPending() int {
	if len(r.auth.Keys) < 2 {
		return r.cfg.MaxPending
	}
	return max(1, r.cfg.MaxPending/2)
}
