// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// Leave asks that Member be removed from the group. The master may name any member, a
// member itself only.
type Leave struct{ Member MemberKey }

// Delete asks that the group be removed.
type Delete struct{}

// Renew extends the group's lease. The members of ListUnconfirmed, which have not
// confirmed yet, are notified again. Only IP and QPN of these records count.
type Renew struct {
	Lease           time.Duration // 0: the switch's default
	ListUnconfirmed []MemberRecord
}

// Accept says that the request of this transaction has been carried out.
type Accept struct {
	Request Type
	Members int           // members of the group now
	Lease   time.Duration // granted, counted from the request
}

// Reject says why the request of this transaction was not carried out. A Reject with
// BadAuthentication has no MAC, since the two sides share no key: it is only a hint.
type Reject struct {
	Request Type
	Problem
}

// Challenge says that the request named another instance of the registrar than the
// answering one, so that the request may be a replay. The sender repeats it with the
// Instance of the Challenge's header; a registration also with an Epoch above EpochKnown.
type Challenge struct {
	Request    Type
	EpochKnown uint64 // newest epoch that the switch knows for the group; 0: none
}

// Confirm is a member's answer to a Notify, to the master.
type Confirm struct {
	Member MemberKey // the member, as in the Notify
	Status Status
	// The member's actual QPN and PSNs, if Status is a refusal; zero under NotJoined.
	QPN   rocev2.QPN
	SQPSN rocev2.PSN
	RQPSN rocev2.PSN
}

// Gone says that Member has been removed from the group, or that the group has ended:
// then Member is zero (to the master) or the addressee's own (to a member).
type Gone struct {
	Member    MemberKey
	EndReason EndReason
	Code      rocev2.Syndrome // Evicted, Failed: mcast.Event.Cause: the syndrome of the member's fatal NAK, or another cause
	PSN       rocev2.PSN      // Evicted: the member acknowledged all data up to this PSN; Failed: the PSN of the NAK to the source
	Lost      LostLink        // SwitchLost: which
}

// Ack acknowledges a Gone, by its Transaction.
type Ack struct{}

func (*Leave) kind() Type     { return TypeLeave }
func (*Delete) kind() Type    { return TypeDelete }
func (*Renew) kind() Type     { return TypeRenew }
func (*Accept) kind() Type    { return TypeAccept }
func (*Reject) kind() Type    { return TypeReject }
func (*Challenge) kind() Type { return TypeChallenge }
func (*Confirm) kind() Type   { return TypeConfirm }
func (*Gone) kind() Type      { return TypeGone }
func (*Ack) kind() Type       { return TypeAck }

// appendKey writes k, or zeros if it is the zero key.
func appendKey(b []byte, k MemberKey, v6 bool) ([]byte, error) {
	switch {
	case k == MemberKey{} && v6:
		k.IP = netip.IPv6Unspecified()
	case k == MemberKey{}:
		k.IP = netip.IPv4Unspecified()
	case !k.IP.IsValid() || k.IP.Is6() != v6 || k.IP.Zone() != "" || k.QPN > rocev2.PSNMask:
		return nil, &Problem{Reason: FamilyMismatch, Member: k}
	}
	return append24(append(b, k.IP.AsSlice()...), uint32(k.QPN)), nil
}

func (l *Leave) append(b []byte, v6 bool) ([]byte, error) { return appendKey(b, l.Member, v6) }

func (*Delete) append(b []byte, _ bool) ([]byte, error) { return b, nil }

func (*Ack) append(b []byte, _ bool) ([]byte, error) { return b, nil }

func (n *Renew) append(b []byte, v6 bool) ([]byte, error) {
	b = binary.BigEndian.AppendUint64(b, uint64(n.Lease))
	return appendSection(b, n.ListUnconfirmed, v6)
}

func parseRenew(r *reader, v6 bool) *Renew {
	return &Renew{Lease: r.duration(), ListUnconfirmed: parseSection(r, v6)}
}

func (a *Accept) append(b []byte, _ bool) ([]byte, error) {
	b = append(b, byte(a.Request))
	b = binary.BigEndian.AppendUint16(b, uint16(a.Members))
	return binary.BigEndian.AppendUint64(b, uint64(a.Lease)), nil
}

func parseAccept(r *reader) *Accept {
	return &Accept{Request: Type(r.u8()), Members: int(r.u16()), Lease: r.duration()}
}

func (j *Reject) append(b []byte, v6 bool) ([]byte, error) {
	b = append(b, byte(j.Request), byte(j.Reason))
	b, err := appendKey(b, j.Member, v6)
	return binary.BigEndian.AppendUint64(b, j.Value), err
}

func parseReject(r *reader, v6 bool) *Reject {
	j := &Reject{Request: Type(r.u8())}
	j.Reason, j.Member, j.Value = Reason(r.u8()), r.optionalKey(v6), r.u64()
	return j
}

func (c *Challenge) append(b []byte, _ bool) ([]byte, error) {
	return binary.BigEndian.AppendUint64(append(b, byte(c.Request)), c.EpochKnown), nil
}

func (c *Confirm) append(b []byte, v6 bool) ([]byte, error) {
	b, err := appendKey(b, c.Member, v6)
	b = append24(append(b, byte(c.Status)), uint32(c.QPN))
	return append24(append24(b, uint32(c.SQPSN)), uint32(c.RQPSN)), err
}

func parseConfirm(r *reader, v6 bool) *Confirm {
	return &Confirm{Member: r.key(v6), Status: Status(r.u8()), QPN: rocev2.QPN(r.u24()), SQPSN: rocev2.PSN(r.u24()), RQPSN: rocev2.PSN(r.u24())}
}

func (g *Gone) append(b []byte, v6 bool) ([]byte, error) {
	b, err := appendKey(b, g.Member, v6)
	b = append24(append(b, byte(g.EndReason), byte(g.Code)), uint32(g.PSN))
	if g.EndReason == SwitchLost {
		b = g.Lost.append(b)
	}
	return b, err
}

func parseGone(r *reader, v6 bool) *Gone {
	g := &Gone{Member: r.optionalKey(v6), EndReason: EndReason(r.u8()), Code: rocev2.Syndrome(r.u8()), PSN: rocev2.PSN(r.u24())}
	if g.EndReason == SwitchLost {
		g.Lost = parseLostLink(r)
	}
	return g
}
