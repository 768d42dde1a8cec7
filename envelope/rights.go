// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import "net/netip"

// Rights bound the requests under a key. The zero value allows everything.
type Rights struct {
	Roles    Roles
	Prefixes []netip.Prefix // GroupIPs; none: all prefixes that the switch serves
	Quota    Quota
}

// Roles are the kinds of requests that a key may make.
type Roles uint8

// Roles. None at all means RoleMaster and RoleMember.
const (
	RoleMaster      Roles = 1 << iota // registers, renews and deletes groups, and removes members
	RoleMember                        // leaves groups
	RoleReceiveOnly                   // leaves groups; in a registration under the key, only the master's own host may send
)

// has reports whether r allows requests of one of the roles.
func (r Roles) has(role Roles) bool {
	if r == 0 {
		r = RoleMaster | RoleMember
	}
	return r&role != 0
}

// roleFor returns the roles any of which allows m.
func roleFor(m *Message) Roles {
	if l, ok := m.Body.(*Leave); ok && l.Member.IP == m.ReplyTo.Addr() {
		return RoleMaster | RoleMember | RoleReceiveOnly
	}
	return RoleMaster
}

// mayUse reports whether the group's address is in the key's prefixes.
func (k *Rights) mayUse(group netip.Addr) bool {
	return len(k.Prefixes) == 0 || inPrefixes(k.Prefixes, group)
}

// mayAsk returns the reason for which m's key does not allow m, whatever the state of the
// group, or nil. The rejection uses up no epoch.
func (r *Registrar) mayAsk(m *Message) *Problem {
	k := r.cfg.Rights[m.KeyID]
	switch {
	case !k.Roles.has(roleFor(m)) && !r.isQuestion(m):
		return &Problem{Reason: KeyRole}
	case !k.mayUse(m.Group):
		return &Problem{Reason: KeyPrefix}
	case r.otherOwner(m):
		return &Problem{Reason: OtherKey}
	}
	if m.Type == TypeRegister || m.Type == TypeDelete { // these use up epochs
		if n := r.newest(m.Group); max(m.Epoch, n)-n > r.cfg.EpochStep {
			return &Problem{Reason: EpochTooFar, Value: n + r.cfg.EpochStep}
		}
	}
	return nil
}

// restrict makes all members but the master's own host receive-only, if the key of g
// allows no more.
func (r *Registrar) restrict(g *group) {
	if r.cfg.Rights[g.key].Roles&RoleReceiveOnly == 0 {
		return
	}
	for i := range g.reg.Members {
		m := &g.reg.Members[i]
		m.ReceiveOnly = m.ReceiveOnly || m.IP != g.reg.Master.Addr()
	}
}
