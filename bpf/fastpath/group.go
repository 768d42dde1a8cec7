// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/gleam-rdma/gleam/rocev2"
)

// GroupSpec is a group, as the programs have to know it while one member is the source.
type GroupSpec struct {
	IP     netip.Addr
	QPN    rocev2.QPN // the virtual one
	PMTU   int
	Source Source
	// Window, if its Len is not 0, is where WRITEs go: they are rewritten by a leg's
	// VADelta and RKey.
	Window    Window
	NoWrite   bool   // WRITEs with bytes are left to user space
	TargetKey uint32 // those with this R_Key are; 0: none
	Slots     int    // the most slots that the ring may have, RingSize; 0: packets are not stored
	Full      bool   // true: its ring was full, and a larger one is of use
	Clones    bool   // frames may be in several buffers, and copies are clones: the source's port has AttachClones
	Legs      []LegSpec
	ACK       ACKSpec
}

// Source is the member that sends, and where its packets come from.
type Source struct {
	IP      netip.Addr
	MAC     rocev2.MAC
	Ifindex int
}

// Window is a range of remotely writable memory.
type Window struct {
	Base, Len uint64
	RKey      uint32
}

// LegSpec is a leg to receivers.
type LegSpec struct {
	Port    int // index of the port, below Config.Ports
	Ifindex int
	PortMAC rocev2.MAC
	MAC     rocev2.MAC // the MAC of the next hop
	VLAN    uint16     // 0: untagged

	// Of a leg to a member; a leg to another switch has no IP, and its copies keep the
	// source's addresses and PSNs.
	IP       netip.Addr
	QPN      rocev2.QPN
	PSNDelta rocev2.PSN // the number added to the source's PSN
	VADelta  uint64     // the number added to the address of a WRITE into the window
	RKey     uint32     // the R_Key of a WRITE into the window

	Gate Gate
}

// Group is a group's place in the maps. The methods that read and write its words may be
// called by one goroutine, the owner of the group, which is not inside Set meanwhile.
type Group struct {
	maps     *Maps
	index    int
	firstLeg int
	room     int // the legs that the place has room for

	ip        netip.Addr // invalid: free
	legs      []int      // indices in maps.legs, by LegSpec
	ring      memory
	ringFirst int
	slots     int
	slotBytes int
	opened    []ACKWord // the result of OpenACKs
	touched   byte      // a byte that keeps Touch from being optimised away

	incarnation uint64 // the incarnation in the word, which is in another CPU's cache while packets come
}

// Flags of fast.h.
const (
	groupWindow  = 1
	groupNoWrite = 2
	groupTargets = 4
	groupNotBack = 8
	groupRing    = 16
	groupLarge   = 32
	groupClones  = 64

	legRewrite = 1
	legTagged  = 2
)

// ErrNoRoom is the reason why a group cannot take the fast path now, or at all.
var ErrNoRoom = errors.New("no room")

// Put makes room for a group, and sets it. It is not FAST. Its ring may be smaller than s says: Slots.
func (m *Maps) Put(s *GroupSpec) (*Group, error) {
	if err := m.Complete(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var best *Group
	for i := range m.groups {
		g := &m.groups[i]
		if !g.ip.IsValid() && g.room >= len(s.Legs) && (best == nil || g.room < best.room) {
			best = g
		}
	}
	if best == nil {
		return nil, fmt.Errorf("group %s: %w for another group with %d legs on the fast path", s.IP, ErrNoRoom, len(s.Legs))
	}
	if err := best.takeRing(s); err != nil {
		return nil, err
	}
	best.ip = s.IP
	err := best.set(s)
	if err == nil {
		err = best.clearCounters()
	}
	if err == nil {
		err = m.enter(s.IP, best.index)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("group %s: %w", s.IP, err), m.leave(s.IP), best.free())
	}
	return best, nil
}

// SlotBytes returns the bytes of a slot for a group's packets.
func SlotBytes(group netip.Addr, pmtu int) int {
	if rocev2.EthernetLen+rocev2.VLANLen+rocev2.MaxHeaders(group.Is4())+pmtu > slotBytes-slotHeader {
		return largeSlotBytes
	}
	return slotBytes
}

// takeRing takes the ring's slots for s.
func (g *Group) takeRing(s *GroupSpec) error {
	g.ring, g.ringFirst, g.slots = nil, 0, 0
	if s.Slots == 0 {
		return nil
	}
	if s.Slots > MaxRing || s.Slots != RingSize(s.Slots) {
		return fmt.Errorf("group %s: a ring of %d slots: it has a power of two of them, %d to %d", s.IP, s.Slots, minRing, MaxRing)
	}
	pool, memory, size := g.maps.small, g.maps.ring, SlotBytes(s.IP, s.PMTU)
	if size == largeSlotBytes {
		pool, memory = g.maps.large, g.maps.ringLarge
	}
	rings := 1 // besides those that there are
	if !s.Full {
		rings = int(g.maps.offered.Load())
	}
	first, n, ok := pool.takeUpTo(s.Slots, rings, s.Full)
	if !ok {
		return fmt.Errorf("group %s: %w for a ring with slots of %d bytes", s.IP, ErrNoRoom, size)
	}
	g.ring, g.ringFirst, g.slots, g.slotBytes = memory, first, n, size
	return nil
}

// enter makes packets to addr those of group index.
func (m *Maps) enter(addr netip.Addr, index int) error {
	if addr.Is4() {
		return m.maps[fastMapFast4].Put(addr.As4(), uint32(index))
	}
	return m.maps[fastMapFast6].Put(addr.As16(), uint32(index))
}

func (m *Maps) leave(addr netip.Addr) (err error) {
	if addr.Is4() {
		err = m.maps[fastMapFast4].Delete(addr.As4())
	} else {
		err = m.maps[fastMapFast6].Delete(addr.As16())
	}
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}

// Delete ends the group and frees its room, when no program is at work on it. A program that has
// taken a packet before the Revoke may store it late: an interrupt, or a hypervisor, may hold it
// up for any time. In the ring of another group the bytes would be those of that group's packet.
//
// All memory of a ring changes hands here, that of one which shrinks or grows too: the group is deleted,
// and put anew. A program writes a slot only after it has claimed a packet, by compare and swap on a word with
// FAST; it has read where the ring is between its read of that word and the swap. So each program that knows the
// old place has begun before the Revoke, and is awaited. One that begins later finds no FAST, and one that
// counts ACKs reads slots only with FAST.
func (g *Group) Delete() error { return DeleteAll([]*Group{g}) }

// DeleteAll deletes groups of the same maps, at least one, and waits once for all.
func DeleteAll(groups []*Group) error {
	m := groups[0].maps
	var errs []error
	m.mu.Lock()
	for _, g := range groups {
		g.Revoke()
		errs = append(errs, m.leave(g.ip)) // no program finds it from now on
	}
	m.mu.Unlock()
	if err := errors.Join(append(errs, groups[0].AwaitPrograms())...); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range groups {
		errs = append(errs, g.free())
	}
	return errors.Join(errs...)
}

// AwaitPrograms waits until all programs have ended that run now. The kernel does so in a change of a map of
// maps, also if the entry is the same as before (maybe_wait_bpf_programs in kernel/bpf/syscall.c): it
// takes some milliseconds, more on a busy machine.
func (g *Group) AwaitPrograms() error {
	if err := g.maps.maps[fastMapDevmaps].Put(uint32(g.index), g.maps.inner[g.index]); err != nil {
		return fmt.Errorf("wait for the programs of group %s: %w", g.ip, err)
	}
	return nil
}

func (g *Group) free() error {
	err := g.setPorts(nil)
	if g.slots != 0 {
		g.pool().giveRing(g.ringFirst, g.slots)
	}
	g.ip, g.legs, g.ring, g.slots = netip.Addr{}, nil, nil, 0
	return err
}

// Set changes everything of the group but its address and its ring. The group must not be
// FAST. What was stored is not found any more.
func (g *Group) Set(s *GroupSpec) error {
	g.maps.mu.Lock()
	defer g.maps.mu.Unlock()
	if g.State().Fast {
		return fmt.Errorf("group %s: is on the fast path: revoke it before it is changed", g.ip)
	}
	return g.set(s)
}

func (g *Group) set(s *GroupSpec) error {
	if err := g.check(s); err != nil {
		return err
	}
	for i := range s.Legs {
		if err := g.maps.setPort(s.Legs[i].Port, uint32(s.Legs[i].Ifindex)); err != nil {
			return fmt.Errorf("leg %d: %w", i, err)
		}
	}
	x := &g.maps.states[g.index]
	word := x.word.Load()
	incarnation := (word>>wordIncarnation + 1) & incarnationMask
	x.word.Store(word&psnMask | incarnation<<wordIncarnation)
	g.incarnation = incarnation
	src := s.Source.IP.AsSlice()
	clear(x.source[:])
	copy(x.source[:], src)
	x.sourceMAC, x.ifindex = s.Source.MAC, uint32(s.Source.Ifindex)
	x.qpn, x.pmtu = bits.ReverseBytes32(uint32(s.QPN)), uint32(s.PMTU)
	x.windowBase, x.windowLen, x.windowRKey, x.targetKey = s.Window.Base, s.Window.Len, s.Window.RKey, s.TargetKey
	x.ringFirst, x.ringMask = uint32(g.ringFirst), uint32(max(g.slots, 1)-1)
	x.firstLeg, x.numLegs = uint32(g.firstLeg), uint32(len(s.Legs))
	x.flags = g.flags(s)
	if err := g.setACK(s); err != nil {
		return err
	}

	// Legs behind the same port follow each other.
	order := make([]int, len(s.Legs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.Legs[a].Port, s.Legs[b].Port) })
	paths := g.maps.paths[g.index*g.maps.config.Ports:][:g.maps.config.Ports]
	clear(paths)
	g.legs = make([]int, len(s.Legs))
	for k, i := range order {
		at, l := g.firstLeg+k, &s.Legs[i]
		g.legs[i] = at
		if p := &paths[l.Port]; p.count == 0 {
			*p = pathState{uint32(at), 1}
		} else {
			p.count++
		}
		setLeg(&g.maps.legs[at], s, l, uint16(incarnation))
	}
	return g.setPorts(s.Legs)
}

// setPort makes an interface that of a port.
func (m *Maps) setPort(port int, ifindex uint32) error {
	if m.ifindex[port] == ifindex {
		return nil
	}
	x := &m.ports[ifindex%uint32(len(m.ports))]
	if x.ifindex != 0 {
		return fmt.Errorf("%w for interface %d: the lowest bits of its index are those of port %d's interface, %d", ErrNoRoom, ifindex, x.port, x.ifindex)
	}
	if old := m.ifindex[port]; old != 0 {
		m.ports[old%uint32(len(m.ports))] = portState{}
	}
	*x, m.ifindex[port] = portState{ifindex, uint32(port)}, ifindex
	return nil
}

// check reports what the programs cannot serve.
func (g *Group) check(s *GroupSpec) error {
	behind := make(map[int]int)
	for i := range s.Legs {
		l := &s.Legs[i]
		if l.Port < 0 || l.Port >= g.maps.config.Ports {
			return fmt.Errorf("leg %d: port %d: there are ports 0 to %d", i, l.Port, g.maps.config.Ports-1)
		}
		if behind[l.Port]++; behind[l.Port] > MaxPortLegs {
			return fmt.Errorf("%w for more than %d legs behind one port", ErrNoRoom, MaxPortLegs)
		}
	}
	switch {
	case s.Clones && len(s.Legs) > MaxClones:
		return fmt.Errorf("%w for %d legs: frames in several buffers are copied to %d at most", ErrNoRoom, len(s.Legs), MaxClones)
	case len(s.Legs) > g.room:
		return fmt.Errorf("%w for %d legs: the group has room for %d", ErrNoRoom, len(s.Legs), g.room)
	case s.IP != g.ip || s.Slots < g.slots || (s.Slots == 0) != (g.slots == 0):
		return fmt.Errorf("another address or ring: put the group anew")
	case s.Source.IP.Is4() != s.IP.Is4():
		return fmt.Errorf("source %s: is of another address family than the group", s.Source.IP)
	}
	return nil
}

func (g *Group) flags(s *GroupSpec) (f uint16) {
	for _, b := range []struct {
		set  bool
		flag uint16
	}{
		{s.Window.Len != 0, groupWindow}, {s.NoWrite, groupNoWrite}, {s.TargetKey != 0, groupTargets},
		{!slices.ContainsFunc(s.Legs, func(l LegSpec) bool { return l.Ifindex == s.Source.Ifindex }), groupNotBack},
		{g.slots != 0, groupRing}, {g.slotBytes == largeSlotBytes, groupLarge}, {s.Clones, groupClones},
	} {
		if b.set {
			f |= b.flag
		}
	}
	return f
}

// setLeg sets a leg's constants and its gate.
func setLeg(x *legState, s *GroupSpec, l *LegSpec, incarnation uint16) {
	x.gate.Store(gateShut)
	x.acked.Store(x.acked.Load() &^ ackOn)
	x.missed.Store(0)
	copy(x.eth[:6], l.MAC[:])
	copy(x.eth[6:], l.PortMAC[:])
	x.ifindex = uint32(l.Ifindex)
	x.flags, x.incarnation, x.vid = 0, incarnation, bits.ReverseBytes16(l.VLAN)
	if l.VLAN != 0 {
		x.flags |= legTagged
	}
	if l.IP.IsValid() {
		x.flags |= legRewrite
		x.qpn, x.rkey = bits.ReverseBytes32(uint32(l.QPN)), bits.ReverseBytes32(l.RKey)
		x.psnDelta, x.vaDelta = uint32(l.PSNDelta), l.VADelta
		clear(x.addresses[:])
		copy(x.addresses[copy(x.addresses[:], s.IP.AsSlice()):], l.IP.AsSlice())
		x.icrc = rocev2.LegDelta(s.Source.IP, s.IP, s.IP, l.IP, s.QPN, l.QPN, 0)
		x.checksum = checksumDelta(s.Source.IP, s.IP, s.IP, l.IP)
	}
	x.gate.Store(l.Gate.word())
}

// checksumDelta returns what is added to the one's complement of an IPv4 header's checksum,
// as in memory, when its addresses change.
func checksumDelta(oldSrc, oldDst, src, dst netip.Addr) uint32 {
	if !oldSrc.Is4() {
		return 0
	}
	sum := uint64(0)
	for _, old := range []netip.Addr{oldSrc, oldDst} {
		sum += uint64(^native(old.AsSlice()))
	}
	for _, is := range []netip.Addr{src, dst} {
		sum += uint64(native(is.AsSlice()))
	}
	sum = sum>>32 + sum&0xFFFFFFFF
	return uint32(sum>>32 + sum)
}

// setPorts makes the group's DEVMAP that of legs.
func (g *Group) setPorts(legs []LegSpec) error {
	devmap := g.maps.inner[g.index]
	for i := range g.room {
		if i >= len(legs) {
			if err := devmap.Delete(uint32(i)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
				return fmt.Errorf("remove a port of the group: %w", err)
			}
			continue
		}
		var value [8]byte
		binary.NativeEndian.PutUint32(value[:], uint32(legs[i].Ifindex))
		binary.NativeEndian.PutUint32(value[4:], uint32(g.maps.egress.FD()))
		if err := devmap.Put(uint32(i), value); err != nil {
			return fmt.Errorf("add port %d (interface %d): %w", legs[i].Port, legs[i].Ifindex, err)
		}
	}
	return nil
}
