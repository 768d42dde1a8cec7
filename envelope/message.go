// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Type is the type of a message. The numbers are on the wire.
type Type uint8

// Message types, with sender and receiver.
const (
	TypeRegister  Type = 1  // master → switch: one segment of a registration
	TypeLeave     Type = 2  // master or member → switch
	TypeDelete    Type = 3  // master → switch
	TypeRenew     Type = 4  // master → switch: extends the lease, lists unconfirmed members
	TypeAccept    Type = 5  // switch → requester
	TypeReject    Type = 6  // switch → requester
	TypeChallenge Type = 7  // switch → requester: its instance, and the group's newest epoch
	TypeNotify    Type = 8  // switch → member: its own record
	TypeConfirm   Type = 9  // member → master
	TypeGone      Type = 10 // switch → master, switch → member
	TypeAck       Type = 11 // master or member → switch: answer to a Gone
	TypeWhere     Type = 12 // switch → member, by the port in question
	TypeHere      Type = 13 // member → switch: answer to a Where
	TypeNotice    Type = 14 // switch → master, switch → member
	numTypes      Type = 15
)

var typeNames = [numTypes]string{
	TypeRegister: "Register", TypeLeave: "Leave", TypeDelete: "Delete", TypeRenew: "Renew", TypeAccept: "Accept",
	TypeReject: "Reject", TypeChallenge: "Challenge", TypeNotify: "Notify", TypeConfirm: "Confirm", TypeGone: "Gone", TypeAck: "Ack",
	TypeWhere: "Where", TypeHere: "Here", TypeNotice: "Notice",
}

// String returns the type's name.
func (t Type) String() string {
	if t > 0 && t < numTypes {
		return typeNames[t]
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// MaxLen is the length in bytes of the longest message, MAC included, that a
// switch accepts.
const MaxLen = 2048

// Version is the version of the wire format that this package speaks.
const Version = 1

const (
	magic       = 0x474C454D // "GLEM"
	fixedLen    = 36         // header bytes before the addresses
	flagIPv6    = 1 << 0     // addresses are 16 bytes, not 4
	flagRelay   = 1 << 1     // sent by a switch to the next one of a tree
	knownFlags  = flagIPv6 | flagRelay
	lenOffset   = 10
	keyIDOffset = 6
)

// Header begins every message. docs/PROTOCOL.md §2 draws it.
type Header struct {
	Type        Type
	KeyID       KeyID
	Relay       bool           // reserved for trees: sent by a switch for the hosts below it
	Hops        uint8          // reserved for trees: number of switches passed; 0 unless Relay
	Epoch       uint64         // the epoch of the group
	Instance    uint64         // the registrar's cookie for the host; 0 if the sender does not know it
	Transaction uint32         // the requester's transaction, repeated in the answer; in Gone, the switch's
	Seq         uint16         // number of this segment, 0 <= Seq < Total
	Total       uint16         // segments of this message, 1 or more; 1 for all types but Register
	Group       netip.Addr     // GroupIP
	ReplyTo     netip.AddrPort // where the answer goes; same family as Group
}

// Message is one decoded message.
type Message struct {
	Header
	Body Body
}

// Body is the part after the header, by type: *Register, *Notify, *Leave, *Delete,
// *Renew, *Accept, *Reject, *Challenge, *Confirm, *Gone, *Ack, *Where, *Here or *Notice.
type Body interface {
	kind() Type
	append(b []byte, v6 bool) ([]byte, error)
}

// String names the message without its contents.
func (m Message) String() string {
	return fmt.Sprintf("%v %s epoch %d tx %d %d/%d", m.Type, m.Group, m.Epoch, m.Transaction, m.Seq+1, m.Total)
}

// GoString is String: %#v must not print an R_Key.
func (m Message) GoString() string { return m.String() }

// append appends the message to b, without its MAC; Append appends both. The length
// field counts trailer more bytes. Type is taken from Body. append fails if the addresses
// are of different families or a field does not fit.
func (m *Message) append(b []byte, trailer int) ([]byte, error) {
	g, r := m.Group, m.ReplyTo.Addr()
	v6 := g.Is6()
	switch {
	case !g.IsValid():
		return nil, fmt.Errorf("encode %v: no GroupIP", m.Body.kind())
	case g.Is4In6() || g.Zone() != "" || r.Zone() != "" || r.Is4() == v6 || !r.IsValid():
		return nil, fmt.Errorf("encode %v for group %s: reply address %s must be of the same IP family, without zone", m.Body.kind(), g, m.ReplyTo)
	case m.Seq >= m.Total || m.Total > 1 && m.Body.kind() != TypeRegister:
		return nil, fmt.Errorf("encode %v for group %s: segment %d of %d", m.Body.kind(), g, m.Seq, m.Total)
	}
	start := len(b)
	flags := byte(0)
	if v6 {
		flags |= flagIPv6
	}
	if m.Relay {
		flags |= flagRelay
	}
	be := binary.BigEndian
	b = be.AppendUint32(b, magic)
	b = append(b, Version, byte(m.Body.kind()))
	b = be.AppendUint16(b, uint16(m.KeyID))
	b = append(b, flags, m.Hops, 0, 0) // the last two become the length
	b = be.AppendUint64(b, m.Epoch)
	b = be.AppendUint64(b, m.Instance)
	b = be.AppendUint32(b, m.Transaction)
	b = be.AppendUint16(b, m.Seq)
	b = be.AppendUint16(b, m.Total)
	b = append(b, g.AsSlice()...)
	b = append(b, r.AsSlice()...)
	b = be.AppendUint16(b, m.ReplyTo.Port())
	b, err := m.Body.append(b, v6)
	if err != nil {
		return nil, fmt.Errorf("encode %v for group %s: %w", m.Body.kind(), g, err)
	}
	n := len(b) - start + trailer
	if n > 0xFFFF {
		return nil, fmt.Errorf("encode %v for group %s: %d bytes are more than a UDP packet holds", m.Body.kind(), g, n)
	}
	be.PutUint16(b[start+lenOffset:], uint16(n))
	return b, nil
}

// headerLen is the length of a header in bytes, by IP family.
func headerLen(v6 bool) int {
	if v6 {
		return fixedLen + 16 + 16 + 2
	}
	return fixedLen + 4 + 4 + 2
}

// ParseError says why bytes are not a message.
type ParseError struct {
	Drop Drop
	Text string
}

// Error describes the defect.
func (e *ParseError) Error() string { return "envelope " + e.Drop.String() + ": " + e.Text }

func defect(d Drop, format string, args ...any) *ParseError {
	return &ParseError{d, fmt.Sprintf(format, args...)}
}

// parseHeader decodes the header of b, whose length field must be len(b), and
// returns the bytes of the body, without MAC.
func parseHeader(b []byte) (h Header, body []byte, perr *ParseError) {
	be := binary.BigEndian
	if len(b) < fixedLen {
		return h, nil, defect(Truncated, "%d bytes", len(b))
	}
	if be.Uint32(b) != magic {
		return h, nil, defect(BadMagic, "%#08x", be.Uint32(b))
	}
	if b[4] != Version {
		return h, nil, defect(BadVersion, "version %d, we speak %d", b[4], Version)
	}
	flags := b[8]
	if flags&^knownFlags != 0 {
		return h, nil, defect(BadFormat, "unknown flags %#x", flags)
	}
	if b[9] != 0 && flags&flagRelay == 0 {
		return h, nil, defect(BadFormat, "%d hops, but not relayed", b[9])
	}
	v6 := flags&flagIPv6 != 0
	h = Header{
		Type: Type(b[5]), KeyID: KeyID(be.Uint16(b[keyIDOffset:])), Relay: flags&flagRelay != 0, Hops: b[9],
		Epoch: be.Uint64(b[12:]), Instance: be.Uint64(b[20:]), Transaction: be.Uint32(b[28:]),
		Seq: be.Uint16(b[32:]), Total: be.Uint16(b[34:]),
	}
	end := len(b)
	if h.KeyID != 0 {
		end -= MACLen
	}
	hl := headerLen(v6)
	if end < hl {
		return h, nil, defect(Truncated, "%d bytes", len(b))
	}
	if int(be.Uint16(b[lenOffset:])) != len(b) {
		return h, nil, defect(Truncated, "says %d bytes, has %d", be.Uint16(b[lenOffset:]), len(b))
	}
	if h.Type == 0 || h.Type >= numTypes {
		return h, nil, defect(BadFormat, "unknown type %d", h.Type)
	}
	if h.Seq >= h.Total || h.Total > 1 && h.Type != TypeRegister {
		return h, nil, defect(BadFormat, "segment %d of %d of a %v", h.Seq, h.Total, h.Type)
	}
	r := reader{b: b[fixedLen:hl]}
	h.Group = r.addr(v6)
	a := r.addr(v6)
	h.ReplyTo = netip.AddrPortFrom(a, r.u16())
	if h.Group.Is4In6() {
		return h, nil, defect(BadFormat, "IPv4-mapped GroupIP")
	}
	return h, b[hl:end], nil
}

// Parse decodes one UDP payload. It checks the form only; Open checks the
// MAC first. Errors are *ParseError.
func Parse(b []byte) (Message, error) {
	h, body, perr := parseHeader(b)
	if perr == nil {
		var m Message
		if m, perr = parseBody(h, body); perr == nil {
			return m, nil
		}
	}
	return Message{}, perr
}

// parseBody decodes the body that follows h; all its bytes must be used.
func parseBody(h Header, b []byte) (Message, *ParseError) {
	m := Message{Header: h}
	r := &reader{b: b}
	v6 := h.Group.Is6()
	switch h.Type {
	case TypeRegister:
		m.Body = &Register{parseGroup(r, v6)}
	case TypeNotify:
		m.Body = &Notify{parseGroup(r, v6)}
	case TypeLeave:
		m.Body = &Leave{Member: r.key(v6)}
	case TypeDelete:
		m.Body = &Delete{}
	case TypeRenew:
		m.Body = parseRenew(r, v6)
	case TypeAccept:
		m.Body = parseAccept(r)
	case TypeReject:
		m.Body = parseReject(r, v6)
	case TypeChallenge:
		m.Body = &Challenge{Request: Type(r.u8()), EpochKnown: r.u64()}
	case TypeConfirm:
		m.Body = parseConfirm(r, v6)
	case TypeGone:
		m.Body = parseGone(r, v6)
	case TypeAck:
		m.Body = &Ack{}
	case TypeNotice:
		m.Body = parseNotice(r, v6)
	case TypeWhere:
		w := &Where{}
		w.Member, w.Nonce = parseNonce(r, v6)
		m.Body = w
	case TypeHere:
		h := &Here{}
		h.Member, h.Nonce = parseNonce(r, v6)
		m.Body = h
	}
	switch {
	case r.truncated:
		return Message{}, defect(Truncated, "body of %v", h.Type)
	case r.malformed != "":
		return Message{}, defect(BadFormat, "%v: %s", h.Type, r.malformed)
	case len(r.b) > 0:
		return Message{}, defect(BadFormat, "%d bytes after the body of %v", len(r.b), h.Type)
	}
	return m, nil
}
