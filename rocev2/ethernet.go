// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"encoding/binary"
	"fmt"
)

// EtherTypes.
const (
	EtherTypeIPv4 uint16 = 0x0800
	EtherTypeARP  uint16 = 0x0806
	EtherTypeVLAN uint16 = 0x8100 // 802.1Q
	EtherTypeQinQ uint16 = 0x88A8 // 802.1ad
	EtherTypeIPv6 uint16 = 0x86DD
)

// Lengths in bytes of Ethernet and VLAN headers. An Ethernet frame without its
// FCS has at least MinFrameLen bytes on the wire; the builders here do not pad.
const (
	EthernetLen = 14
	VLANLen     = 4
	MinFrameLen = 60
)

// MAC is an Ethernet address.
type MAC [6]byte

// String returns m as six hexadecimal bytes with colons.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// Ethernet is an Ethernet header of at least EthernetLen bytes (IEEE 802.3).
type Ethernet []byte

// Dst returns the destination address.
func (e Ethernet) Dst() MAC { return MAC(e[0:6]) }

// Src returns the source address.
func (e Ethernet) Src() MAC { return MAC(e[6:12]) }

// EtherType returns the type after the addresses, which is that of the outer
// VLAN tag if there is one.
func (e Ethernet) EtherType() uint16 { return binary.BigEndian.Uint16(e[12:14]) }

// SetDst sets the destination address.
func (e Ethernet) SetDst(m MAC) { copy(e[0:6], m[:]) }

// SetSrc sets the source address.
func (e Ethernet) SetSrc(m MAC) { copy(e[6:12], m[:]) }

// SetEtherType sets the type after the addresses.
func (e Ethernet) SetEtherType(t uint16) { binary.BigEndian.PutUint16(e[12:14], t) }

// VLAN is the part of a VLAN tag after its EtherType: the tag control information and the
// EtherType of the tagged payload, VLANLen bytes (IEEE 802.1Q §9.6).
type VLAN []byte

// TCI returns the tag control information: PCP (3 bits), DEI, VID (12 bits).
func (v VLAN) TCI() uint16 { return binary.BigEndian.Uint16(v[0:2]) }

// VID returns the VLAN identifier, 0..4095; 0 is a priority tag.
func (v VLAN) VID() uint16 { return v.TCI() & 0x0FFF }

// EtherType returns the type of the tagged payload.
func (v VLAN) EtherType() uint16 { return binary.BigEndian.Uint16(v[2:4]) }

// SetTCI sets the tag control information.
func (v VLAN) SetTCI(t uint16) { binary.BigEndian.PutUint16(v[0:2], t) }

// SetEtherType sets the type of the tagged payload.
func (v VLAN) SetEtherType(t uint16) { binary.BigEndian.PutUint16(v[2:4], t) }
