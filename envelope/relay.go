// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"
)

// A relay is a message about a group from one switch to its neighbour.
// docs/PROTOCOL.md §12 draws it.

// relayKind is the kind of a relay. The numbers are on the wire.
type relayKind uint8

// Kinds of relays. Each request is repeated until it is answered.
const (
	relayPrepare   relayKind = 1  // parent → child: one segment of the group
	relayPrepared  relayKind = 2  // answer: all below has room and is located
	relayRefused   relayKind = 3  // answer to Prepare or Commit: why not
	relayCommit    relayKind = 4  // parent → child: install
	relayCommitted relayKind = 5  // answer: installed, here and, unless lacking, below
	relayEnd       relayKind = 6  // notice to any neighbour in the tree: the attempt, or the group, has ended
	relayEnded     relayKind = 7  // answer; also to a Renew of an unknown group
	relayRenew     relayKind = 8  // parent → child: lease, and whom to notify
	relayRenewed   relayKind = 9  // answer
	relayGone      relayKind = 10 // notice to any neighbour in the tree: a member has gone, or the group has failed
	relayNoted     relayKind = 11 // answer
	relayRebuild   relayKind = 12 // child → parent: the tree needs other ways
	relayRebuilds  relayKind = 13 // answer
	numRelayKinds  relayKind = 14
)

var relayNames = [numRelayKinds]string{
	relayPrepare: "Prepare", relayPrepared: "Prepared", relayRefused: "Refused", relayCommit: "Commit", relayCommitted: "Committed",
	relayEnd: "End", relayEnded: "Ended", relayRenew: "Renew", relayRenewed: "Renewed", relayGone: "Gone", relayNoted: "Noted",
	relayRebuild: "Rebuild", relayRebuilds: "Rebuilds",
}

// String returns the name of k.
func (k relayKind) String() string {
	if k > 0 && k < numRelayKinds {
		return relayNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

const (
	relayMagic    = 0x474C524C // "GLRL"
	relayVersion  = 4
	relayFixedLen = 66     // header bytes before the GroupIP
	relayProof    = 1 << 1 // flag: the proof of the group's key follows the body
	// Offsets of what is written when a relay is sent.
	relayKindOffset    = 5
	relayKeyOffset     = 6
	relayFlagsOffset   = 8
	relayLengthOffset  = 10
	relaySenderOffset  = 12
	relaySessionOffset = 20
	relaySeqOffset     = 28
	relayGroupKey      = 64

	maxProblems = 32 // problems in one Refused
)

// renewWhom says which members at the switches below a Renew has notified.
type renewWhom uint8

// Whom to notify. The numbers are on the wire.
const (
	notifyListed renewWhom = 0
	notifyAll    renewWhom = 1
	notifyFresh  renewWhom = 2 // those that came with the last update
)

// attemptID identifies the registration of one epoch of a group through a tree. A second
// registration of the epoch has another number.
type attemptID struct {
	epoch  uint64
	root   SwitchID
	number uint64 // drawn by the root
	key    KeyID  // the key of the group: a relay about the attempt proves it
}

// relay is one decoded relay, or one to be sent. The fields after group are of the kinds
// that are named.
type relay struct {
	kind       relayKind
	unproved   bool  // Refused of a switch that lacks the group's key
	hops       uint8 // Prepare: switches passed
	id         attemptID
	seq, total uint16 // segment; Prepare only, else 0 of 1
	group      netip.Addr

	prepare  *prepareBody   // Prepare
	height   uint8          // Prepared: levels of switches below the sender
	diameter uint8          // Prepared: switches between two edges below the sender, at most
	above    uint8          // Commit: levels of switches behind the parent
	lacking  bool           // Committed: a switch below has not installed the attempt
	problems []Problem      // Refused; at least one
	why      EndReason      // End; NotEnded: the attempt has failed
	lost     LostLink       // End: of SwitchLost; Rebuild: the way that cannot be used any more
	serial   uint32         // Renew, Renewed, Gone, Noted
	tx       uint32         // Renew: of the Notify
	lease    time.Duration  // Renew
	whom     renewWhom      // Renew: the members to notify
	list     []MemberRecord // the members of notifyListed
	gone     *Gone
}

// relayRoom returns the bytes available for a body in an IP packet of mtu bytes.
func relayRoom(mtu int, v6 bool) int {
	return payloadRoom(mtu, v6) + headerLen(v6) - relayHeaderLen(v6) - MACLen // payloadRoom has left room for one MAC
}

// relayHeaderLen is the length of a header in bytes.
func relayHeaderLen(v6 bool) int {
	if v6 {
		return relayFixedLen + 16
	}
	return relayFixedLen + 4
}

// append appends m with zeros in place of what is written when it is sent.
func (m *relay) append(b []byte) ([]byte, error) {
	be := binary.BigEndian
	v6 := m.group.Is6()
	flags := byte(0)
	if v6 {
		flags = flagIPv6
	}
	if m.id.key != 0 && !m.unproved {
		flags |= relayProof
	}
	b = be.AppendUint32(b, relayMagic)
	b = append(b, relayVersion, byte(m.kind), 0, 0, flags, m.hops, 0, 0)
	b = append(b, make([]byte, 24)...) // sender, session, sequence number
	b = be.AppendUint64(b, uint64(m.id.root))
	b = be.AppendUint64(b, m.id.number)
	b = be.AppendUint64(b, m.id.epoch)
	b = be.AppendUint16(be.AppendUint16(b, m.seq), m.total)
	b = be.AppendUint16(b, uint16(m.id.key))
	b = append(b, m.group.AsSlice()...)
	return m.appendBody(b, v6)
}

func (m *relay) appendBody(b []byte, v6 bool) (_ []byte, err error) {
	be := binary.BigEndian
	switch m.kind {
	case relayPrepare:
		return m.prepare.append(b, v6)
	case relayPrepared:
		b = append(b, m.height, m.diameter)
	case relayRefused:
		b = append(b, byte(min(len(m.problems), maxProblems)))
		for _, p := range m.problems[:min(len(m.problems), maxProblems)] {
			b = append(b, byte(p.Reason))
			if b, err = appendKey(b, p.Member, v6); err != nil {
				return nil, err
			}
			b = be.AppendUint64(b, p.Value)
		}
	case relayCommit:
		b = append(b, m.above)
	case relayCommitted:
		b = append(b, 0)
		if m.lacking {
			b[len(b)-1] = 1
		}
	case relayEnd:
		if b = append(b, byte(m.why)); m.why == SwitchLost {
			b = m.lost.append(b)
		}
	case relayRenew:
		b = be.AppendUint32(be.AppendUint32(b, m.serial), m.tx)
		b = be.AppendUint64(b, uint64(m.lease))
		if b = append(b, byte(m.whom)); m.whom == notifyListed {
			return appendSection(b, m.list, v6)
		}
	case relayRebuild:
		b = m.lost.append(b)
	case relayGone:
		return m.gone.append(be.AppendUint32(b, m.serial), v6)
	case relayRenewed, relayNoted:
		b = be.AppendUint32(b, m.serial)
	}
	return b, nil
}

// parseRelay decodes b without its proof and its MAC. It checks the form alone.
func parseRelay(b []byte) (m relay, perr *ParseError) {
	be := binary.BigEndian
	if len(b) < relayFixedLen || len(b) < relayHeaderLen(b[relayFlagsOffset]&flagIPv6 != 0) {
		return m, defect(Truncated, "%d bytes", len(b))
	}
	v6 := b[relayFlagsOffset]&flagIPv6 != 0
	m = relay{
		kind: relayKind(b[5]), hops: b[9],
		id:  attemptID{root: SwitchID(be.Uint64(b[36:])), number: be.Uint64(b[44:]), epoch: be.Uint64(b[52:]), key: KeyID(be.Uint16(b[relayGroupKey:]))},
		seq: be.Uint16(b[60:]), total: be.Uint16(b[62:]),
	}
	proved := b[relayFlagsOffset]&relayProof != 0
	m.unproved = m.id.key != 0 && !proved
	switch {
	case b[relayFlagsOffset]&^(flagIPv6|relayProof) != 0:
		return m, defect(BadFormat, "unknown flags %#x", b[relayFlagsOffset])
	case proved && m.id.key == 0:
		return m, defect(BadFormat, "a proof of no key")
	case m.kind == 0 || m.kind >= numRelayKinds:
		return m, defect(BadFormat, "unknown kind %d", b[5])
	case m.seq >= m.total || m.total > 1 && m.kind != relayPrepare:
		return m, defect(BadFormat, "segment %d of %d of a %v", m.seq, m.total, m.kind)
	case m.id.root == 0 || m.id.epoch == 0:
		return m, defect(BadFormat, "%v of root %v, epoch %d", m.kind, m.id.root, m.id.epoch)
	}
	r := &reader{b: b[relayFixedLen:]}
	if m.group = r.addr(v6); !unicast(m.group) || m.group.Is4In6() {
		return m, defect(BadFormat, "group %s", m.group)
	}
	m.parseBody(r, v6)
	switch {
	case r.truncated:
		return m, defect(Truncated, "body of %v", m.kind)
	case r.malformed != "":
		return m, defect(BadFormat, "%v: %s", m.kind, r.malformed)
	case len(r.b) > 0:
		return m, defect(BadFormat, "%d bytes after the body of %v", len(r.b), m.kind)
	}
	return m, nil
}

func (m *relay) parseBody(r *reader, v6 bool) {
	switch m.kind {
	case relayPrepare:
		m.prepare = parsePrepare(r, v6)
	case relayPrepared:
		m.height, m.diameter = r.u8(), r.u8()
	case relayRefused:
		n := int(r.u8())
		if n == 0 || n > maxProblems {
			r.fail("number of reasons")
			return
		}
		for range n {
			m.problems = append(m.problems, Problem{Reason: Reason(r.u8()), Member: r.optionalKey(v6), Value: r.u64()})
		}
	case relayCommit:
		m.above = r.u8()
	case relayCommitted:
		lacking := r.u8()
		if m.lacking = lacking == 1; lacking > 1 {
			r.fail("whether a switch lacks the attempt")
		}
	case relayEnd:
		if m.why = EndReason(r.u8()); m.why == SwitchLost {
			m.lost = parseLostLink(r)
		}
	case relayRenew:
		m.serial, m.tx, m.lease = r.u32(), r.u32(), r.duration()
		switch m.whom = renewWhom(r.u8()); {
		case m.whom == notifyListed:
			m.list = parseSection(r, v6)
		case m.whom > notifyFresh:
			r.fail("whom to notify")
		}
	case relayRebuild:
		m.lost = parseLostLink(r)
	case relayGone:
		m.serial, m.gone = r.u32(), parseGone(r, v6)
	case relayRenewed, relayNoted:
		m.serial = r.u32()
	}
}
