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
// allow lists, and MaxStations the MAC addresses that may send by a locked port.
const (
	MaxAllowed  = 1024
	MaxStations = 16384
)

// Policy is the set of senders whose frames for user space a port takes. The zero value
// takes all.
type Policy struct {
	Blocked bool   // the bridge port does not forward
	Filters bool   // the bridge filters VLANs: PVID, TagType and VLANs count
	PVID    uint16 // of untagged frames; 0: they are dropped
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
		if err := p.maps.AllowedMacs.Put(stationKey(Station{MAC: mac}), uint32(0)); err != nil {
			return fmt.Errorf("allow MAC address %x at %s: %w", mac, p.ifname, err)
		}
	}
	for _, a := range o.Addresses {
		if err := putPrefix(p.maps.Allowed4, p.maps.Allowed6, a, 0); err != nil {
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
	if err := p.maps.Policies.Put(uint32(0), value); err != nil {
		return fmt.Errorf("set the policy of %s: %w", p.ifname, err)
	}
	if err := p.retainAllowed(o); err != nil {
		return fmt.Errorf("remove senders from the lists of %s: %w", p.ifname, err)
	}
	return nil
}

// retainAllowed removes from the maps of the lists what o does not have.
func (p *PortProgram) retainAllowed(o *Policy) error {
	macs := make(map[[8]byte]struct{})
	for _, mac := range o.MACs {
		macs[stationKey(Station{MAC: mac})] = struct{}{}
	}
	four, six := make(map[[8]byte]struct{}), make(map[[20]byte]struct{})
	for _, a := range o.Addresses {
		if a.Addr().Is4() {
			four[prefixKey4(a)] = struct{}{}
		} else {
			six[prefixKey6(a)] = struct{}{}
		}
	}
	return errors.Join(retain(p.maps.AllowedMacs, macs), retain(p.maps.Allowed4, four), retain(p.maps.Allowed6, six))
}

// SetStation allows s to send by a locked port, or no longer.
func (p *PortProgram) SetStation(s Station, allowed bool) error {
	err := error(nil)
	if allowed {
		err = p.maps.Stations.Put(stationKey(s), uint32(0))
	} else if err = p.maps.Stations.Delete(stationKey(s)); errors.Is(err, ebpf.ErrKeyNotExist) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("set who speaks at %s: %w", p.ifname, err)
	}
	return nil
}

// stationKey is struct station.
func stationKey(s Station) (k [8]byte) {
	copy(k[:], s.MAC[:])
	binary.NativeEndian.PutUint16(k[6:], s.VID)
	return k
}
