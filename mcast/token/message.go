// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// Report is what one end of an edge knows. A newer report replaces all older ones.
type Report struct {
	Term      Term
	Outdated  Term // a term that is over, to the parent: one above it is needed
	Crossings uint64
	// Member is, to the parent, the unfinished source that a switch below has reported;
	// to the child, the member for which the token has crossed.
	Member    Member
	Joined    bool // true, to the parent: nobody at or below the sender serves in an older term
	Suspended bool // true, to the child: the sender is cut off from the root
	Requests  bool // the token is with the neighbour, and waited for
	Doubtful  bool // true, to the parent: Member may be at rest, and yields to one that is not
}

// Position is what the sender of a message says of one source: all members behind the
// downstream end of the edge have everything that the source has sent before PSN (R89).
// The switch around the machine fills it in, and takes it.
type Position struct {
	Source Member // NoMember: the message says nothing
	PSN    uint32 // 24 bits; 0 without Source
	Next   uint32 // the PSN behind the last packet of Source that has come to a downstream end that takes its data; else PSN (R99)
	// Over: to a downstream end, the source sends nothing before PSN, and whether it was had is not said (R115); to an
	// upstream end, the sender knows no position of Source (R105).
	Over   bool
	Ends   bool   // the packet before PSN is the last one of a message; false if that is not known
	Needed Member // the source that the sender needs a position of, or NoMember
	Layout uint32 // layout of the sender's tree (mcast.TreeSpec)
}

// Message carries a report between neighbours.
type Message struct {
	Group   netip.Addr // IPv4 addresses are encoded as mapped into IPv6
	Session uint64
	Seq     uint64 // sequence number of the report
	Ack     uint64 // the sequence number of the newest report that came from the neighbour
	Poll    bool   // an acknowledgement of Seq is missing, or a position
	Report
	Position Position
}

// Sizes of an encoded message. The last MACLen bytes are for its authentication by the
// caller: they are zero when AppendBinary returns, and Parse does not read them.
const (
	MACLen     = 32
	MessageLen = 92 + MACLen
)

// version is the first byte of a message.
const version = 6

// Flags of a message.
const (
	flagPoll = 1 << iota
	flagJoined
	flagSuspended
	flagRequests
	flagDoubtful
	flagEnds
	flagOver
	flagsEnd
)

// Errors of Parse.
var (
	ErrLength  = errors.New("a token message has another length")
	ErrVersion = errors.New("the version of the token message is not known")
	ErrField   = errors.New("a field of the token message has a value that it cannot have")
)

// AppendBinary appends the message, with room for a MAC at its end.
func (msg *Message) AppendBinary(b []byte) []byte {
	var flags byte
	for i, set := range [...]bool{msg.Poll, msg.Joined, msg.Suspended, msg.Requests, msg.Doubtful, msg.Position.Ends, msg.Position.Over} {
		if set {
			flags |= 1 << i
		}
	}
	b = append(b, version, flags, 0, 0)
	group := msg.Group.As16()
	b = append(b, group[:]...)
	b = binary.BigEndian.AppendUint64(b, msg.Session)
	b = binary.BigEndian.AppendUint64(b, msg.Seq)
	b = binary.BigEndian.AppendUint64(b, msg.Ack)
	b = binary.BigEndian.AppendUint64(b, uint64(msg.Term))
	b = binary.BigEndian.AppendUint64(b, uint64(msg.Outdated))
	b = binary.BigEndian.AppendUint64(b, msg.Crossings)
	b = binary.BigEndian.AppendUint32(b, uint32(msg.Member))
	at := &msg.Position
	for _, v := range [...]uint32{uint32(at.Source), at.PSN, uint32(at.Needed), at.Layout, at.Next} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return append(b, make([]byte, MACLen)...)
}

// ParseMessage reads a message whose MAC has been verified.
func ParseMessage(b []byte) (Message, error) {
	if len(b) != MessageLen {
		return Message{}, fmt.Errorf("%w: %d bytes, not %d", ErrLength, len(b), MessageLen)
	}
	if b[0] != version {
		return Message{}, fmt.Errorf("%w: %d, not %d", ErrVersion, b[0], version)
	}
	flags := b[1]
	at := func(i int) uint64 { return binary.BigEndian.Uint64(b[i:]) }
	msg := Message{
		Group:   netip.AddrFrom16([16]byte(b[4:20])).Unmap(),
		Session: at(20), Seq: at(28), Ack: at(36),
		Poll: flags&flagPoll != 0,
		Report: Report{
			Term: Term(at(44)), Outdated: Term(at(52)), Crossings: at(60), Member: Member(binary.BigEndian.Uint32(b[68:])),
			Joined: flags&flagJoined != 0, Suspended: flags&flagSuspended != 0, Requests: flags&flagRequests != 0, Doubtful: flags&flagDoubtful != 0,
		},
	}
	word := func(i int) uint32 { return binary.BigEndian.Uint32(b[i:]) }
	msg.Position = Position{Source: Member(word(72)), PSN: word(76), Ends: flags&flagEnds != 0, Over: flags&flagOver != 0, Needed: Member(word(80)), Layout: word(84), Next: word(88)}
	if at := &msg.Position; max(at.PSN, at.Next) >= 1<<24 || (at.PSN|at.Next != 0 || at.Ends || at.Over) && at.Source == NoMember {
		return Message{}, fmt.Errorf("%w: the position %#x, next %#x, of source %d", ErrField, at.PSN, at.Next, at.Source)
	}
	if flags >= flagsEnd || b[2]|b[3] != 0 || msg.Session == 0 || msg.Seq == 0 {
		return Message{}, fmt.Errorf("%w: flags %#x, reserved %#x, session %d, sequence number %d", ErrField, flags, b[2:4], msg.Session, msg.Seq)
	}
	return msg, nil
}
