// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Kinds of nodes: the first byte of a node's name. The rest is an address.
const (
	kindSwitch = 's'
	kindGroup  = 'g'
	kindEpoch  = 'e'
	kindHost   = 'h'
	kindCreate = 'c'
)

// Parts of nodes. A node's own value is the part without a name. Parts of a group that begin
// with partFormer are members that have gone; parts of a host that begin with partKey are its
// locations in the groups of a key.
const (
	partSelf     = ""
	partTurn     = "t"
	partJoining  = "j" // Turn.Joining of the turn
	partHistory  = "h" // members of the turn with Position.FullHistory
	partFailed   = "x"
	partFormer   = "f"
	partIdentity = "i"
	partPlace    = "p"
	partKey      = "k"
)

func nodeName(kind byte, ip netip.Addr) string { return string(append([]byte{kind}, ip.AsSlice()...)) }

// Change is a change of the state that is made as a whole, or not at all. The zero value
// changes nothing.
type Change struct{ edits batch }

// PutSwitch replaces the state of the switch itself.
func (c *Change) PutSwitch(s Switch) {
	c.edits.set(string(kindSwitch), partSelf, appendUvarint(appendUvarint(nil, s.Boots), s.EpochBase))
}

// PutGroup replaces the group with this GroupIP.
func (c *Change) PutGroup(g *Group) {
	name := nodeName(kindGroup, g.Registration.Group)
	c.edits.drop(name)
	c.edits.set(name, partSelf, appendGroup(nil, g))
	for i := range g.Former {
		c.setFormer(name, &g.Former[i])
	}
	if g.Failed {
		c.SetFailed(g.Registration.Group)
	}
	if g.Turn != nil {
		c.SetTurn(g.Registration.Group, g.Turn)
	}
	if g.Identity != nil {
		c.edits.set(name, partIdentity, appendIdentity(nil, g.Identity))
	}
	if g.Place != nil {
		c.edits.set(name, partPlace, appendPlace(nil, g.Place))
	}
}

// DropGroup removes a group. Its epoch stays.
func (c *Change) DropGroup(ip netip.Addr) { c.edits.drop(nodeName(kindGroup, ip)) }

// AddFormer removes a member of a group, and notes what it was.
func (c *Change) AddFormer(ip netip.Addr, f *Former) { c.setFormer(nodeName(kindGroup, ip), f) }

func (c *Change) setFormer(name string, f *Former) {
	c.edits.set(name, formerPart(&f.Record), appendFormer(nil, f))
}

// formerPart is the name of the part for a former member: a queue pair with its numbers.
func formerPart(m *envelope.MemberRecord) string {
	b := append24(appendAddr([]byte(partFormer), m.IP), uint32(m.QPN))
	return string(append24(append24(b, uint32(m.SQPSN)), uint32(m.RQPSN)))
}

// SetFailed notes that a group has failed.
func (c *Change) SetFailed(ip netip.Addr) { c.edits.set(nodeName(kindGroup, ip), partFailed, []byte{}) }

// SetTurn replaces the turn of a group.
func (c *Change) SetTurn(ip netip.Addr, t *Turn) {
	b := appendAddr(nil, t.Source)
	b = appendCount(b, len(t.Positions))
	for _, p := range t.Positions {
		b = append24(append24(appendAddr(b, p.Member), uint32(p.Send)), uint32(p.Receive))
	}
	c.edits.set(nodeName(kindGroup, ip), partTurn, b)
	c.edits.set(nodeName(kindGroup, ip), partJoining, appendAddrs(t.Joining))
	var full []netip.Addr
	for _, p := range t.Positions {
		if p.FullHistory {
			full = append(full, p.Member)
		}
	}
	c.edits.set(nodeName(kindGroup, ip), partHistory, appendAddrs(full))
}

func appendAddrs(ips []netip.Addr) []byte {
	b := appendCount(nil, len(ips))
	for _, ip := range ips {
		b = appendAddr(b, ip)
	}
	return b
}

// SetEpoch notes the newest epoch of a GroupIP. 0 forgets it.
func (c *Change) SetEpoch(ip netip.Addr, newest uint64) {
	if newest == 0 {
		c.edits.drop(nodeName(kindEpoch, ip))
		return
	}
	c.edits.set(nodeName(kindEpoch, ip), partSelf, appendUvarint(nil, newest))
}

// PutHost replaces what is kept of a host. A host without a location is forgotten.
func (c *Change) PutHost(ip netip.Addr, h *Host) {
	name := nodeName(kindHost, ip)
	c.edits.drop(name)
	if h.Pinned != (Location{}) {
		c.edits.set(name, partSelf, appendLocation(nil, &h.Pinned))
	}
	for key, at := range h.Locations {
		c.edits.set(name, keyPart(key), appendLocation(nil, &at))
	}
}

// keyPart is the name of the part for the location of a host in the groups of a key.
func keyPart(key envelope.KeyID) string { return string(appendUvarint([]byte(partKey), uint64(key))) }

func appendLocation(b []byte, at *Location) []byte {
	b = append(appendString(b, at.Port), at.MAC[:]...)
	if b = appendUvarint(b, uint64(at.VLAN)); at.Hop.IsValid() {
		b = appendAddr(b, at.Hop)
	}
	return b
}

func (r *reader) location() (at Location) {
	at.Port = r.text()
	copy(at.MAC[:], r.bytes(6))
	if at.VLAN = uint16(r.upTo(0xFFF)); r.ok() && len(r.b) > 0 {
		at.Hop = r.addr()
	}
	return at
}

func parseHost(n node) (*Host, error) {
	h := &Host{}
	for _, part := range sortedParts(n) {
		r := reader{b: n[part]}
		at := r.location()
		if part == partSelf {
			h.Pinned = at
		} else {
			name := reader{b: []byte(strings.TrimPrefix(part, partKey))}
			key := envelope.KeyID(name.upTo(math.MaxUint16))
			if !name.done() || part != keyPart(key) {
				r.fail()
			}
			if h.Locations == nil {
				h.Locations = make(map[envelope.KeyID]Location)
			}
			h.Locations[key] = at
		}
		if !r.done() {
			return nil, fmt.Errorf("its part %q cannot be read", part)
		}
	}
	return h, nil
}

// SetCreated notes a group that members may connect to, in the words of the caller. nil forgets it.
func (c *Change) SetCreated(ip netip.Addr, b []byte) {
	if b == nil {
		c.edits.drop(nodeName(kindCreate, ip))
		return
	}
	c.edits.set(nodeName(kindCreate, ip), partSelf, b)
}

// state decodes t. An error names the node that is wrong.
func (t table) state() (*State, error) {
	s := &State{Groups: make(map[netip.Addr]*Group), Epochs: make(map[netip.Addr]uint64), Hosts: make(map[netip.Addr]*Host), Created: make(map[netip.Addr][]byte)}
	for name := range t {
		if err := s.add(name, t.node(name)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *State) add(name string, n node) error {
	r := reader{b: n[partSelf]}
	if name == string(kindSwitch) && len(n) == 1 {
		if s.Switch = (Switch{Boots: r.uvarint(), EpochBase: r.uvarint()}); !r.done() {
			return fmt.Errorf("the state of the switch itself cannot be read")
		}
		return nil
	}
	var ip netip.Addr
	if name != "" {
		ip, _ = netip.AddrFromSlice([]byte(name[1:]))
	}
	if !ip.IsValid() || name[0] != kindGroup && name[0] != kindHost && len(n) != 1 {
		return fmt.Errorf("an entry %q that this version does not know", name)
	}
	switch name[0] {
	case kindGroup:
		g, err := parseGroup(ip, n)
		if err != nil {
			return fmt.Errorf("group %s: %w", ip, err)
		}
		s.Groups[ip] = g
		return nil
	case kindEpoch:
		s.Epochs[ip] = r.uvarint()
	case kindCreate:
		s.Created[ip] = r.bytes(uint64(len(r.b)))
	case kindHost:
		h, err := parseHost(n)
		if err != nil {
			return fmt.Errorf("host %s: %w", ip, err)
		}
		s.Hosts[ip] = h
		return nil
	default:
		r.fail()
	}
	if !r.done() {
		return fmt.Errorf("the %q entry of %s cannot be read", name[0], ip)
	}
	return nil
}

func parseGroup(ip netip.Addr, n node) (*Group, error) {
	r := reader{b: n[partSelf]}
	g := r.group(ip)
	if !r.done() {
		return nil, fmt.Errorf("its description cannot be read")
	}
	var joining, full []netip.Addr
	for _, part := range sortedParts(n) {
		p := reader{b: n[part]}
		switch {
		case part == partSelf:
			continue
		case part == partFailed:
			g.Failed = true
		case part == partIdentity:
			g.Identity = p.identity()
		case part == partPlace:
			g.Place = p.place()
		case part == partTurn:
			g.Turn = p.turn()
			g.Turn.Joining = joining
			for i := range g.Turn.Positions {
				at := &g.Turn.Positions[i]
				at.FullHistory = slices.Contains(full, at.Member)
			}
		case part == partJoining: // before partTurn
			joining = p.addrs()
		case part == partHistory: // before partTurn
			full = p.addrs()
		case strings.HasPrefix(part, partFormer):
			f := p.former()
			g.Former = append(g.Former, f)
			if part != formerPart(&f.Record) {
				p.fail()
			}
		default:
			p.fail()
		}
		if !p.done() {
			return nil, fmt.Errorf("its part %q cannot be read", part)
		}
	}
	if !g.fits() {
		return nil, fmt.Errorf("its parts are about other numbers of members")
	}
	g.removeFormer()
	return g, nil
}

// removeFormer takes the members that have gone since the registration from its members and
// from the turn.
func (g *Group) removeFormer() {
	reg := &g.Registration
	for i := range g.Former {
		f := &g.Former[i]
		if j := slices.Index(reg.Members, f.Record); f.Reason != 0 && j >= 0 {
			g.removeMember(j)
		}
	}
	if t := g.Turn; t != nil {
		gone := func(ip netip.Addr) bool {
			return !slices.ContainsFunc(reg.Members, func(m envelope.MemberRecord) bool { return m.IP == ip })
		}
		t.Positions = slices.DeleteFunc(t.Positions, func(p Position) bool { return gone(p.Member) })
		t.Joining = slices.DeleteFunc(t.Joining, gone)
		if gone(t.Source) {
			t.Source = netip.Addr{}
		}
	}
}

func appendGroup(b []byte, g *Group) []byte {
	reg := &g.Registration
	b = appendUvarint(b, reg.Epoch)
	b = append24(b, uint32(reg.QPN))
	b = appendCount(b, reg.PathMTU)
	b = appendUvarint(b, uint64(reg.Policy))
	b = appendCount(b, reg.Quorum)
	b = appendDuration(b, reg.DeadAfter)
	b = appendCount(b, reg.LagPSNs)
	b = appendDuration(b, reg.LagTime)
	b = append(b, reg.SenderTimeout, reg.SenderRetries)
	b = appendUvarint(b, reg.Base)
	b = appendDuration(b, reg.Lease)
	b = appendWindow(b, reg.Window)
	b = append32(b, reg.TargetKey)
	b = appendFlag(b, reg.NoRepair)
	b = appendUvarint(appendAddr(b, reg.Master.Addr()), uint64(reg.Master.Port()))
	b = appendUvarint(b, uint64(g.Key))
	b = append32(b, g.Transaction)
	b = appendCount(b, len(g.Digests))
	for i := range g.Digests {
		b = append(b, g.Digests[i][:]...)
	}
	b = appendCount(b, int(g.RegisteredAt.UnixMilli()))
	b = appendCount(b, len(reg.Members))
	for i := range reg.Members {
		b = appendRecord(b, &reg.Members[i])
		b = appendUvarint(b, g.Joined[i])
	}
	return b
}

func (r *reader) group(ip netip.Addr) *Group {
	g := &Group{Registration: envelope.Registration{Group: ip, Epoch: r.uvarint(), GroupParams: mcast.GroupParams{
		QPN: rocev2.QPN(r.u24()), PathMTU: r.count(), Policy: mcast.Policy(r.upTo(uint64(mcast.Quorum))), Quorum: r.count(),
		DeadAfter: r.duration(), LagPSNs: r.count(), LagTime: r.duration(), SenderTimeout: r.u8(), SenderRetries: r.u8(),
	}, Base: r.uvarint(), Lease: r.duration(), Window: r.window(), TargetKey: r.u32(), NoRepair: r.flag()}}
	master := r.addr()
	if port := uint16(r.upTo(0xFFFF)); master.IsValid() {
		g.Registration.Master = netip.AddrPortFrom(master, port)
	}
	g.Key = envelope.KeyID(r.upTo(0xFFFF))
	g.Transaction = r.u32()
	digests := r.uvarint()
	g.Digests = roomFor[[32]byte](r, digests)
	for n := digests; n > 0 && r.ok(); n-- {
		var d [32]byte
		copy(d[:], r.bytes(32))
		g.Digests = append(g.Digests, d)
	}
	g.RegisteredAt = time.UnixMilli(int64(r.count()))
	members := r.uvarint()
	g.Registration.Members, g.Joined = roomFor[envelope.MemberRecord](r, members), roomFor[uint64](r, members)
	for n := members; n > 0 && r.ok(); n-- {
		g.Registration.Members = append(g.Registration.Members, r.record())
		g.Joined = append(g.Joined, r.uvarint())
	}
	return g
}

func (r *reader) turn() *Turn {
	t := &Turn{Source: r.addr()}
	for n := r.uvarint(); n > 0 && r.ok(); n-- {
		t.Positions = append(t.Positions, Position{Member: r.addr(), Send: r.psn(), Receive: r.psn()})
	}
	return t
}

func (r *reader) addrs() (ips []netip.Addr) {
	for n := r.uvarint(); n > 0 && r.ok(); n-- {
		ips = append(ips, r.addr())
	}
	return ips
}

func appendFormer(b []byte, f *Former) []byte {
	b = appendRecord(b, &f.Record)
	b = appendUvarint(b, f.Joined)
	return append24(append(b, byte(f.Reason), byte(f.Code)), uint32(f.PSN))
}

func (r *reader) former() Former {
	return Former{Record: r.record(), Joined: r.uvarint(), Reason: envelope.EndReason(r.u8()), Code: rocev2.Syndrome(r.u8()), PSN: r.psn()}
}

// Bits of a record's first byte.
const (
	recordReceives = 1 << 0
	recordWindow   = 1 << 1
)

func appendRecord(b []byte, m *envelope.MemberRecord) []byte {
	flags := byte(0)
	if m.ReceiveOnly {
		flags |= recordReceives
	}
	if m.Window != (mcast.Window{}) {
		flags |= recordWindow
	}
	b = appendAddr(append(b, flags), m.IP)
	b = append24(append24(append24(b, uint32(m.QPN)), uint32(m.SQPSN)), uint32(m.RQPSN))
	if flags&recordWindow != 0 {
		b = appendWindow(b, m.Window)
	}
	return b
}

func (r *reader) record() envelope.MemberRecord {
	flags := r.u8()
	m := envelope.MemberRecord{IP: r.addr(), QPN: rocev2.QPN(r.u24()), SQPSN: r.psn(), RQPSN: r.psn(), ReceiveOnly: flags&recordReceives != 0}
	if flags&recordWindow != 0 {
		m.Window = r.window()
	}
	if flags&^(recordReceives|recordWindow) != 0 {
		r.fail()
	}
	return m
}

func appendWindow(b []byte, w mcast.Window) []byte {
	return append32(appendUvarint(appendUvarint(b, w.Base), w.Len), w.RKey)
}

func (r *reader) window() mcast.Window {
	return mcast.Window{Base: r.uvarint(), Len: r.uvarint(), RKey: r.u32()}
}
