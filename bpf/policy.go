// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
)

// MaxAllowed bounds the addresses of each family, and the MAC addresses, in a port's
// allow lists, and MaxStations the MAC addresses that may send by a locked port. All locked
// ports together have four times as many.
const (
	MaxAllowed  = 1024
	MaxStations = 16384
)

// Policy is the set of senders whose frames for user space a port takes. The zero value
// takes all.
type Policy struct {
	Blocked bool   // the bridge port does not forward
	Filters bool   // the bridge filters VLANs: PVID, TagType and VLANs count
	PVID    uint16 // the VLAN of untagged frames; 0: they are dropped
	TagType uint16 // EtherType of the bridge's tags
	VLANs   VLANs
	Locked  bool // only stations may send
	// Lists of the configuration; nil: all hosts may send.
	MACs      [][6]byte
	Addresses []netip.Prefix
	// Neighbour is the MAC address of the switch at the other end of the link, which may send
	// although the port is locked or the lists do not have it; zeros: there is none.
	Neighbour [6]byte
}

// VLANs is a set of VIDs.
type VLANs [512]byte

// Add puts a VID into v.
func (v *VLANs) Add(vid uint16) { v[vid>>3&511] |= 1 << (vid & 7) }

// And removes from v the VIDs that o lacks.
func (v *VLANs) And(o *VLANs) {
	for i := range v {
		v[i] &= o[i]
	}
}

// Station is a host that may send by a locked port; VID is 0 where the bridge does not
// filter VLANs.
type Station struct {
	MAC [6]byte
	VID uint16
}

// Flags of struct policy.
const (
	policyBlocked = 1 << iota
	policyVLANs
	policyLocked
	policyMACs
	policyAddresses
	policyNeighbour
)

// SetPolicy replaces the program's policy by o. Senders that the lists of o no longer have
// are removed when the new ones are in force.
func (p *PortProgram) SetPolicy(o *Policy) error {
	for _, mac := range o.MACs {
		if err := p.maps.AllowedMacs.Put(p.stationKey(Station{MAC: mac}), uint32(0)); err != nil {
			return fmt.Errorf("allow MAC address %x at %s: %w", mac, p.ifname, err)
		}
	}
	for _, a := range o.Addresses {
		if err := p.allow(a); err != nil {
			return fmt.Errorf("allow %s at %s: %w", a, p.ifname, err)
		}
	}
	var flags uint32
	for _, f := range []struct {
		on  bool
		bit uint32
	}{
		{o.Blocked, policyBlocked}, {o.Filters, policyVLANs}, {o.Locked, policyLocked},
		{o.MACs != nil, policyMACs}, {o.Addresses != nil, policyAddresses},
	} {
		if f.on {
			flags |= f.bit
		}
	}
	if flags&(policyLocked|policyMACs|policyAddresses) != 0 && o.Neighbour != [6]byte{} {
		flags |= policyNeighbour
	}
	value := make([]byte, 16+len(o.VLANs)) // struct policy
	binary.NativeEndian.PutUint32(value, flags)
	binary.NativeEndian.PutUint16(value[4:], o.PVID)
	binary.BigEndian.PutUint16(value[6:], o.TagType)
	copy(value[8:], o.VLANs[:])
	copy(value[8+len(o.VLANs):], o.Neighbour[:])
	if err := p.maps.Policies.Put(p.slot, value); err != nil {
		return fmt.Errorf("set the policy of %s: %w", p.ifname, err)
	}
	if err := p.retainAllowed(o); err != nil {
		return fmt.Errorf("remove senders from the lists of %s: %w", p.ifname, err)
	}
	return nil
}

// retainAllowed removes from the maps of the lists what o does not have.
func (p *PortProgram) retainAllowed(o *Policy) error {
	macs := make(map[stationKey]struct{})
	for _, mac := range o.MACs {
		macs[p.stationKey(Station{MAC: mac})] = struct{}{}
	}
	four, six := make(map[allowedKey4]struct{}), make(map[allowedKey6]struct{})
	for _, a := range o.Addresses {
		if a.Addr().Is4() {
			four[p.allowedKey4(a)] = struct{}{}
		} else {
			six[p.allowedKey6(a)] = struct{}{}
		}
	}
	return errors.Join(retain(p.maps.AllowedMacs, stationSlot(p.slot), macs),
		retain(p.maps.Allowed4, func(k allowedKey4) bool { return k.Slot == p.slot }, four),
		retain(p.maps.Allowed6, func(k allowedKey6) bool { return k.Slot == p.slot }, six))
}

// SetStation allows s to send by a locked port, or no longer.
func (p *PortProgram) SetStation(s Station, allowed bool) error {
	err := error(nil)
	if allowed {
		err = p.maps.Stations.Put(p.stationKey(s), uint32(0))
	} else if err = p.maps.Stations.Delete(p.stationKey(s)); errors.Is(err, ebpf.ErrKeyNotExist) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("set who speaks at %s: %w", p.ifname, err)
	}
	return nil
}

// stationKey is struct station.
type stationKey struct {
	MAC  [6]byte
	VID  uint16
	Slot uint32
}

func (p *PortProgram) stationKey(s Station) stationKey { return stationKey{s.MAC, s.VID, p.slot} }

// stationSlot reports of a key whether it is that of a slot.
func stationSlot(slot uint32) func(stationKey) bool {
	return func(k stationKey) bool { return k.Slot == slot }
}

// allowedKey4 is struct allowed4, and allowedKey6 struct allowed6: all bits of the slot are part of
// the prefix.
type (
	allowedKey4 struct {
		Bits, Slot uint32
		Addr       [4]byte
	}
	allowedKey6 struct {
		Bits, Slot uint32
		Addr       [16]byte
	}
)

func (p *PortProgram) allowedKey4(a netip.Prefix) allowedKey4 {
	return allowedKey4{32 + uint32(a.Bits()), p.slot, a.Addr().As4()}
}

func (p *PortProgram) allowedKey6(a netip.Prefix) allowedKey6 {
	return allowedKey6{32 + uint32(a.Bits()), p.slot, a.Addr().As16()}
}

// allow enters a into the list of its family.
func (p *PortProgram) allow(a netip.Prefix) error {
	if a.Addr().Is4() {
		return p.maps.Allowed4.Put(p.allowedKey4(a), uint32(0))
	}
	return p.maps.Allowed6.Put(p.allowedKey6(a), uint32(0))
}
