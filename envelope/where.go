// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"net/netip"
)

// The switch verifies a member's location: a Where leaves by one port to one MAC address,
// with a random number. The Here with that number proves that a holder of the group's
// key, with the member's address, is behind the port by which the Here arrives. The
// driver knows the ports: it draws the numbers and compares the two locations.

// NonceLen is the length of a Nonce in bytes.
const NonceLen = 16

// Nonce is a random number that is sent once.
type Nonce [NonceLen]byte

// Where asks the host with the address Member for a Here.
type Where struct {
	Member netip.Addr
	Nonce  Nonce
}

// Here is the answer to Where, with its Nonce.
type Here struct {
	Member netip.Addr
	Nonce  Nonce
}

func (*Where) kind() Type { return TypeWhere }
func (*Here) kind() Type  { return TypeHere }

func (w *Where) append(b []byte, v6 bool) ([]byte, error) {
	return appendNonce(b, w.Member, &w.Nonce, v6)
}

func (h *Here) append(b []byte, v6 bool) ([]byte, error) {
	return appendNonce(b, h.Member, &h.Nonce, v6)
}

func appendNonce(b []byte, member netip.Addr, n *Nonce, v6 bool) ([]byte, error) {
	if !member.IsValid() || member.Is6() != v6 || member.Zone() != "" {
		return nil, &Problem{Reason: FamilyMismatch, Member: MemberKey{IP: member}}
	}
	return append(append(b, member.AsSlice()...), n[:]...), nil
}

func parseNonce(r *reader, v6 bool) (member netip.Addr, n Nonce) {
	member = r.addr(v6)
	copy(n[:], r.take(NonceLen))
	return member, n
}

// handleWhere answers every Where for this host's address, whatever the group: a
// restarted host may not know the group any more. The answer is under the key of the
// Where.
func (m *Member) handleWhere(msg *Message, w *Where, out *Output) {
	if w.Member != m.cfg.Local.Addr() {
		m.drop(NotForUs, out)
		return
	}
	m.toSwitch(msg.KeyID, msg.Group, msg.Epoch, msg.Instance, msg.Transaction, &Here{w.Member, w.Nonce}, out)
}

// keyOf returns the key for a Where to members of g: that of the registration, or the
// registrar's own if the group was registered by hand.
func (r *Registrar) keyOf(g *group) KeyID {
	if g.local() {
		return r.auth.Send
	}
	return g.key
}

// Key returns the key under which the members of a group that is installed or being
// located answer a Where: their answers count for groups of the same key alone.
func (r *Registrar) Key(ip netip.Addr) (key KeyID, ok bool) {
	g := r.groups[ip]
	if g == nil {
		g = r.locating[ip]
	}
	if g == nil {
		return 0, false
	}
	return r.keyOf(g), true
}

// withMember returns the group at ip that has a member, installed or being located.
func (r *Registrar) withMember(ip, member netip.Addr) (g *group, k MemberKey, ok bool) {
	for _, g := range [...]*group{r.groups[ip], r.locating[ip]} {
		if k, ok := g.member(member); ok {
			return g, k, true
		}
	}
	return nil, MemberKey{}, false
}

// Where returns the packet of a Where for a member of a group that is installed or being
// located. The driver sends it by the port in question. A Here that answers it is an
// Event of kind MemberHere.
func (r *Registrar) Where(ip, member netip.Addr, n Nonce) (Packet, error) {
	g, _, ok := r.withMember(ip, member)
	if !ok {
		return Packet{}, fmt.Errorf("ask where %s is: it is not a member of group %s", member, ip)
	}
	us := netip.AddrPortFrom(ip, r.cfg.Port)
	b, err := Append(nil, &Message{Header: Header{
		Epoch: g.reg.Epoch, Instance: r.cookie(r.addrOf(MemberKey{IP: member}), r.keyOf(g)), Transaction: g.tx, Total: 1, Group: ip, ReplyTo: us,
	}, Body: &Where{member, n}}, r.auth.Keys, r.keyOf(g))
	if err != nil {
		return Packet{}, fmt.Errorf("ask where %s is: %w", member, err)
	}
	return Packet{Src: us, Dst: r.addrOf(MemberKey{IP: member}), Data: b}, nil
}

// member returns the member of g with address ip; g may be nil.
func (g *group) member(ip netip.Addr) (MemberKey, bool) {
	if g == nil {
		return MemberKey{}, false
	}
	for i := range g.reg.Members {
		if g.reg.Members[i].IP == ip {
			return g.reg.Members[i].Key(), true
		}
	}
	return MemberKey{}, false
}

// here processes the answer to a Where: authentic, under the group's key, and from the
// member's address. The driver checks the nonce and the location.
func (r *Registrar) here(m *Message, h *Here, out *Output) {
	g, k, ok := r.withMember(m.Group, h.Member)
	switch {
	case !ok:
		r.drop(UnknownGroupMsg, out)
	case h.Member != m.ReplyTo.Addr() || m.KeyID != r.keyOf(g):
		r.drop(WrongSource, out)
		out.Detail = fmt.Sprintf("Here for %s from %s under key %d", h.Member, m.ReplyTo.Addr(), m.KeyID)
	default:
		out.Events = append(out.Events, Event{Kind: MemberHere, Group: m.Group, Epoch: m.Epoch, Member: k, Nonce: h.Nonce})
	}
}
