// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// NoticeKind is what a Notice says. The numbers are on the wire.
type NoticeKind uint8

// Kinds of Notice.
const (
	NoticeStalled  NoticeKind = 1 // the group's ACK has not advanced for a second or more: it waits for Member, at PSN
	NoticeResumed  NoticeKind = 2 // the ACK advances again; it had waited for Member
	NoticeFailed   NoticeKind = 3 // notice to a member: the group has failed because of Member; Code and PSN as in a Gone
	numNoticeKinds NoticeKind = 4
)

// Notice tells a host what its group waits for, or whose fault its end is. Receivers that do not know
// the type drop it: nothing depends on it but what the host's program is told. It is acknowledged as a
// Gone is.
type Notice struct {
	Kind   NoticeKind
	Member MemberKey
	Code   rocev2.Syndrome
	PSN    rocev2.PSN
	Serial uint64 // grows from one to the next about a group, also over a restart of the switch: a recording is void
}

func (*Notice) kind() Type { return TypeNotice }

func (n *Notice) append(b []byte, v6 bool) ([]byte, error) {
	b, err := appendKey(append(b, byte(n.Kind)), n.Member, v6)
	b = append24(append(b, byte(n.Code)), uint32(n.PSN))
	return binary.BigEndian.AppendUint64(b, n.Serial), err
}

func parseNotice(r *reader, v6 bool) *Notice {
	n := &Notice{Kind: NoticeKind(r.u8()), Member: r.key(v6), Code: rocev2.Syndrome(r.u8()), PSN: rocev2.PSN(r.u24()), Serial: r.u64()}
	if n.Kind == 0 || n.Kind >= numNoticeKinds {
		r.malformed = "unknown kind"
	}
	return n
}

// Delayed records that the ACK of a group has stalled, or advances again, as n says. The master is told, if
// it registered the group here, and source, the member that waits for completions, if it is here.
func (r *Registrar) Delayed(now time.Duration, ip netip.Addr, n *Notice, source MemberKey, out *Output) {
	out.reset()
	r.setTime(now)
	g := r.groups[ip]
	if g == nil || g.local() || g.failed {
		return
	}
	if g.isRoot() {
		r.queueNotice(now, g, g.reg.Master, n, out)
	}
	if g.isHere(source) {
		r.queueNotice(now, g, r.addrOf(source), n, out)
	}
}

// tellFailed tells the members of g that are here because of whom it has failed. Their Gone follows, when the
// master deletes the group, and does not say it.
func (r *Registrar) tellFailed(now time.Duration, g *group, gone *Gone, out *Output) {
	if g.local() {
		return
	}
	n := &Notice{Kind: NoticeFailed, Member: gone.Member, Code: gone.Code, PSN: gone.PSN}
	for i := range g.reg.Members {
		if g.reg.Tree.Leg(i) == NoNeighbour {
			r.queueNotice(now, g, r.addrOf(g.reg.Members[i].Key()), n, out)
		}
	}
}

// queueNotice sends n to dst as queueGone does, in place of an earlier one.
func (r *Registrar) queueNotice(now time.Duration, g *group, dst netip.AddrPort, n *Notice, out *Output) {
	if e := r.events.notices[noticeTo{g.reg.Group, dst}]; e != nil {
		r.events.remove(e)
	}
	r.queueGone(now, g, dst, n, out)
}

// noticeTo is about which group, and to which address a Notice is.
type noticeTo struct {
	group netip.Addr
	to    netip.AddrPort
}

// handleNotice acknowledges every Notice, known or not, and reports each once.
func (m *Member) handleNotice(msg *Message, n *Notice, out *Output) {
	if msg.Group.Is4() != m.cfg.Local.Addr().Is4() {
		m.drop(NotForUs, out)
		return
	}
	m.toSwitch(msg.KeyID, msg.Group, msg.Epoch, msg.Instance, msg.Transaction, &Ack{}, out)
	g := m.groups[msg.Group]
	switch {
	case g == nil:
		m.drop(UnknownGroupMsg, out)
	case !m.acceptsFrom(g, msg.KeyID):
		m.drop(OtherKeyMsg, out)
	case g.epoch == 0 || msg.Epoch < g.epoch || g.ended:
		m.drop(StaleMessage, out)
	case n.Kind == NoticeFailed:
		m.end(g, msg.Epoch, Failed, out)
		e := &out.Events[len(out.Events)-1]
		e.Member, e.PSN, e.Code = n.Member, n.PSN, n.Code
	case n.Serial <= g.notice:
		m.drop(DuplicateMsg, out)
	default:
		g.notice = n.Serial
		out.Events = append(out.Events, n.event(msg))
	}
}

// handleNotice is that of a member.
func (m *Master) handleNotice(msg *Message, n *Notice, out *Output) {
	m.sendUnder(msg.KeyID, m.cfg.Local, m.switchAddr, &Message{Header: Header{
		Epoch: msg.Epoch, Instance: msg.Instance, Transaction: msg.Transaction, Total: 1, Group: m.reg.Group, ReplyTo: m.cfg.Local,
	}, Body: &Ack{}}, out)
	switch {
	case msg.Epoch != m.reg.Epoch || m.phase != registered && m.phase != confirming || n.Kind == NoticeFailed:
		m.drop(StaleMessage, out)
	case n.Serial <= m.notice:
		m.drop(DuplicateMsg, out)
	default:
		m.notice = n.Serial
		out.Events = append(out.Events, n.event(msg))
	}
}

func (n *Notice) event(msg *Message) Event {
	kind := Stalled
	if n.Kind == NoticeResumed {
		kind = Resumed
	}
	return Event{Kind: kind, Group: msg.Group, Epoch: msg.Epoch, Member: n.Member, PSN: n.PSN}
}
