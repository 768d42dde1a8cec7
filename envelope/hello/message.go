// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package hello

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/rocev2"
)

// EtherType and Destination are where hellos are sent. The destination is a link-local
// group address, which bridges do not forward (IEEE 802.1Q, table 8-1).
const EtherType = 0x88B5

// Destination is the nearest bridge of any kind.
var Destination = rocev2.MAC{0x01, 0x80, 0xC2, 0x00, 0x00, 0x0E}

// Version is the version of the wire format.
const Version = 1

// MaxNeighbours bounds the neighbours of a link that are heard, and listed in a hello.
const MaxNeighbours = 4

// Bounds of the interval between two hellos.
const (
	MinInterval = 10 * time.Millisecond
	MaxInterval = 10 * time.Second
)

const (
	magic        = 0x474C4849 // "GLHI"
	fixedLen     = 76
	neighbourLen = 32

	// MinLen and MaxLen bound a hello in bytes.
	MinLen = fixedLen + envelope.MACLen
	MaxLen = MinLen + MaxNeighbours*neighbourLen + maxExtensions
)

// Extensions follow the neighbours: type, length of the value, and value, by ascending type.
// One of a type that a receiver does not know has no effect.
const (
	maxExtensions = 64 // bytes of all together
	extensionAPI  = 1  // IP address, IPv4 as mapped into IPv6, and TCP port
	apiLen        = 18
)

// label begins what the HMAC covers: no message of the registration protocol is an
// authentic hello, nor a hello one of those.
const label = "gleam: switch to switch\x00"

// SwitchID is the stable identity of a switch. 0 is none.
type SwitchID uint64

func (id SwitchID) String() string { return fmt.Sprintf("%016x", uint64(id)) }

// Speaker is a switch in one of its lives.
type Speaker struct {
	ID          SwitchID
	Incarnation uint64 // drawn at random when the switch starts; not 0
}

func (s Speaker) String() string { return fmt.Sprintf("%v/%x", s.ID, s.Incarnation) }

// Address is what a hello says about the sender's end of the link.
type Address struct {
	Port uint32 // number of the sender's port
	MAC  rocev2.MAC
	IPv4 netip.Addr // the port's IPv4 address; not valid: none
	IPv6 netip.Addr // the port's IPv6 address; not valid: none
	MTU  uint32     // the MTU of the sender's port, in bytes
}

// Message is a hello.
type Message struct {
	KeyID      envelope.KeyID
	MaxVersion uint8 // the highest version of the protocols between switches that the sender speaks
	Interval   time.Duration
	// Capabilities are bits; those that a receiver does not know have no effect.
	Capabilities uint32
	Speaker
	Address
	Seq       uint64 // counts the sender's hellos on this link; from 1
	Neighbour []Heard
	API       netip.AddrPort // where the sender's API over TCP is; not valid: it has none
}

// Heard is a neighbour that the sender hears on this link.
type Heard struct {
	Speaker
	Challenge uint64 // drawn at random by the sender for this neighbour; not 0
	Echo      uint64 // the neighbour's challenge for the sender; 0: not known yet
}

// Append appends the hello with its HMAC.
func (m *Message) Append(b []byte, keys envelope.Keys) ([]byte, error) {
	key, ok := keys[m.KeyID]
	switch {
	case !ok:
		return nil, fmt.Errorf("encode hello: key %d is not configured", m.KeyID)
	case len(m.Neighbour) > MaxNeighbours:
		return nil, fmt.Errorf("encode hello: %d neighbours, want at most %d", len(m.Neighbour), MaxNeighbours)
	case m.Interval < MinInterval || m.Interval > MaxInterval:
		return nil, fmt.Errorf("encode hello: interval %v, want %v to %v", m.Interval, MinInterval, MaxInterval)
	}
	start := len(b)
	be := binary.BigEndian
	b = be.AppendUint32(b, magic)
	b = append(b, Version, m.MaxVersion)
	b = be.AppendUint16(b, uint16(m.KeyID))
	b = be.AppendUint16(b, uint16(m.Interval/time.Millisecond))
	length := MinLen + len(m.Neighbour)*neighbourLen
	if m.API.IsValid() {
		length += 2 + apiLen
	}
	b = be.AppendUint16(b, uint16(length))
	b = be.AppendUint32(b, m.Capabilities)
	b = be.AppendUint64(b, uint64(m.ID))
	b = be.AppendUint64(b, m.Incarnation)
	b = be.AppendUint64(b, m.Seq)
	b = be.AppendUint32(b, m.Port)
	b = append(b, m.MAC[:]...)
	b = append(b, byte(len(m.Neighbour)), 0)
	var four [4]byte
	if m.IPv4.Is4() {
		four = m.IPv4.As4()
	}
	b = append(b, four[:]...)
	var six [16]byte
	if m.IPv6.Is6() {
		six = m.IPv6.As16()
	}
	b = append(b, six[:]...)
	b = be.AppendUint32(b, m.MTU)
	for _, n := range m.Neighbour {
		b = be.AppendUint64(b, uint64(n.ID))
		b = be.AppendUint64(b, n.Incarnation)
		b = be.AppendUint64(b, n.Challenge)
		b = be.AppendUint64(b, n.Echo)
	}
	if m.API.IsValid() {
		at := m.API.Addr().As16()
		b = be.AppendUint16(append(append(b, extensionAPI, apiLen), at[:]...), m.API.Port())
	}
	return append(b, macOf(key, b[start:])...), nil
}

func macOf(key, b []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(label))
	h.Write(b)
	return h.Sum(nil)
}

// Open checks the HMAC of b, in constant time, and decodes it. Before the HMAC has been
// verified, only magic, version, key id and length are read.
func Open(b []byte, keys envelope.Keys) (Message, Drop) {
	be := binary.BigEndian
	switch {
	case len(b) < MinLen || be.Uint32(b) != magic:
		return Message{}, Malformed
	case b[4] != Version:
		return Message{}, BadVersion
	case int(be.Uint16(b[10:])) != len(b):
		return Message{}, Malformed
	}
	m := Message{KeyID: envelope.KeyID(be.Uint16(b[6:]))}
	key, ok := keys[m.KeyID]
	if !ok {
		return Message{}, UnknownKey
	}
	n := len(b) - envelope.MACLen
	if !hmac.Equal(macOf(key, b[:n]), b[n:]) {
		return Message{}, BadMAC
	}
	m.MaxVersion, m.Interval = b[5], time.Duration(be.Uint16(b[8:]))*time.Millisecond
	m.Capabilities = be.Uint32(b[12:])
	m.ID, m.Incarnation, m.Seq = SwitchID(be.Uint64(b[16:])), be.Uint64(b[24:]), be.Uint64(b[32:])
	m.Port, m.MAC = be.Uint32(b[40:]), rocev2.MAC(b[44:50])
	if four := netip.AddrFrom4([4]byte(b[52:56])); !four.IsUnspecified() {
		m.IPv4 = four
	}
	if six := netip.AddrFrom16([16]byte(b[56:72])); !six.IsUnspecified() {
		m.IPv6 = six
	}
	m.MTU = be.Uint32(b[72:])
	count, list := int(b[50]), b[fixedLen:n]
	if count > MaxNeighbours || len(list) < count*neighbourLen || b[51] != 0 || !m.possible() {
		return Message{}, Malformed
	}
	list, extensions := list[:count*neighbourLen], list[count*neighbourLen:]
	if !m.extend(extensions) {
		return Message{}, Malformed
	}
	for ; len(list) > 0; list = list[neighbourLen:] {
		h := Heard{Speaker{SwitchID(be.Uint64(list)), be.Uint64(list[8:])}, be.Uint64(list[16:]), be.Uint64(list[24:])}
		if h.ID == 0 || h.Incarnation == 0 || h.Challenge == 0 {
			return Message{}, Malformed
		}
		m.Neighbour = append(m.Neighbour, h)
	}
	return m, NoDrop
}

// extend reads the extensions. It returns false for any that no switch sends.
func (m *Message) extend(b []byte) bool {
	if len(b) > maxExtensions {
		return false
	}
	for last := byte(0); len(b) > 0; {
		if len(b) < 2 || b[0] <= last || len(b) < 2+int(b[1]) {
			return false
		}
		value := b[2 : 2+b[1]]
		if last = b[0]; last == extensionAPI {
			if len(value) != apiLen {
				return false
			}
			m.API = netip.AddrPortFrom(netip.AddrFrom16([16]byte(value)).Unmap(), binary.BigEndian.Uint16(value[16:]))
			if a := m.API.Addr(); a.IsUnspecified() || a.IsMulticast() || m.API.Port() == 0 {
				return false
			}
		}
		b = b[2+len(value):]
	}
	return true
}

// possible reports whether the fixed fields have values that a switch sends.
func (m *Message) possible() bool {
	return m.ID != 0 && m.Incarnation != 0 && m.Seq != 0 && m.MaxVersion != 0 && m.MAC != rocev2.MAC{} && m.MAC[0]&1 == 0 &&
		m.Interval >= MinInterval && m.Interval <= MaxInterval && !m.IPv6.Is4In6()
}
