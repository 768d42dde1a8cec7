// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import "net/netip"

// Rights are what may be asked under a key. The zero value is everything.
type Rights struct {
	Roles    Roles
	Prefixes []netip.Prefix // GroupIPs; none: all that the switch serves
	Quota    Quota
}

// Roles are the requests that may be made under a key.
type Roles uint8

// Roles. None at all means RoleMaster and RoleMember.
const (
	RoleMaster      Roles = 1 << iota // registers, renews and deletes groups, and removes members
	RoleMember                        // leaves groups
	RoleReceiveOnly                   // a member's; of what is registered under the key, the master's own host alone may send
)

// has reports that requests of one of the roles may be made.
func (r Roles) has(role Roles) bool {
	if r == 0 {
		r = RoleMaster | RoleMember
	}
	return r&role != 0
}

// roleFor returns the roles, one of which m takes.
func roleFor(m *Message) Roles {
	if l, ok := m.Body.(*Leave); ok && l.Member.IP == m.ReplyTo.Addr() {
		return RoleMaster | RoleMember | RoleReceiveOnly
	}
	return RoleMaster
}

// mayUse reports that the group's address is one of the key's.
func (k *Rights) mayUse(group netip.Addr) bool {
	if len(k.Prefixes) == 0 {
		return true
	}
	for _, p := range k.Prefixes {
		if p.Contains(group) {
			return true
		}
	}
	return false
}

// mayAsk says why the request m is not taken, whatever its group's state is. The
// rejection uses no epoch up.
func (r *Registrar) mayAsk(m *Message) *Problem {
	k := r.cfg.Rights[m.KeyID]
	switch {
	case !k.Roles.has(roleFor(m)):
		return &Problem{Reason: KeyRole}
	case !k.mayUse(m.Group):
		return &Problem{Reason: KeyPrefix}
	case r.otherOwner(m):
		return &Problem{Reason: OtherKey}
	}
	if m.Type == TypeRegister || m.Type == TypeDelete { // which use epochs up
		if n := r.newest(m.Group); m.Epoch > n && m.Epoch-n > r.cfg.EpochStep {
			return &Problem{Reason: EpochTooFar, Value: n + r.cfg.EpochStep}
		}
	}
	return nil
}

// restrict makes all members but the master's own host receive only, if that is all
// that the key of g is good for.
func (r *Registrar) restrict(g *group) {
	if r.cfg.Rights[g.key].Roles&RoleReceiveOnly == 0 {
		return
	}
	for i := range g.reg.Members {
		m := &g.reg.Members[i]
		m.ReceiveOnly = m.ReceiveOnly || m.IP != g.reg.Master.Addr()
	}
}
