// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// connect makes the program of k connect: rdma_connect.
func (k *kernel) connect(port uint16, data string) *kconn {
	r := k.w.r
	c := &kconn{id: CommID(r.Uint32()), qpn: rocev2.QPN(0x11 + r.IntN(1<<20)), psn: rocev2.PSN(r.Uint32N(1 << 24)), state: "sent", tries: linuxTries}
	k.conns[c.id] = c
	g := k.w.listen.Group
	c.message = Message{Attribute: ConnectRequest, TID: r.Uint64(), LocalID: c.id, Data: []byte(data), Request: Request{
		ServiceID: servicePrefix | uint64(port), GUID: k.guid, QPN: c.qpn, RemoteTimeout: 20, FlowControl: true, PSN: c.psn, LocalTimeout: 20, RetryCount: 5, PKey: 0xFFFF,
		MTU: 3, RNRRetry: 6, MaxRetries: 15, LocalGID: k.ip, RemoteGID: g, HopLimit: 64, AckTimeout: 17, SrcPort: 4321, Src: k.ip, Dst: g,
	}}
	k.fire(c)
	return c
}

// disconnect makes the program of k end c; one that is killed sends one DREQ.
func (k *kernel) disconnect(c *kconn, killed bool) {
	switch c.state {
	case "established", "replied":
		c.state, c.tries = "leaving", linuxTries
		if killed {
			c.tries = 1
		}
		c.message = Message{Attribute: DisconnectRequest, TID: k.w.r.Uint64(), LocalID: c.id, RemoteID: c.remote, DREQ: DREQ{c.peerQPN}}
		k.fire(c)
	case "sent":
		k.send(&Message{Attribute: ConnectReject, TID: c.message.TID, LocalID: c.id, Reject: Reject{Of: RejectedOther, Reason: TimedOut, ARI: binary.BigEndian.AppendUint64(nil, uint64(k.guid))}})
		k.forget(c, "given up")
	case "received":
		k.reject(c, ConsumerReject)
	}
}

func (k *kernel) reject(c *kconn, why RejectReason) {
	k.send(&Message{Attribute: ConnectReject, TID: c.message.TID, LocalID: c.id, RemoteID: c.remote, Reject: Reject{Of: RejectedREQ, Reason: why}})
	k.forget(c, "rejected")
}

func (k *kernel) forget(c *kconn, event string) {
	c.state, c.events = "gone", append(c.events, event)
	delete(k.conns, c.id)
}

func (k *kernel) fire(c *kconn) {
	if c.tries == 0 {
		k.forget(c, "unreachable")
		return
	}
	c.tries--
	c.at = k.w.now + linuxRepeat
	k.send(&c.message)
}

func (k *kernel) send(m *Message) {
	k.w.transmit(k.ip, k.w.listen.Group, m.Append(nil))
}

// list returns the connections of k, by their IDs.
func (k *kernel) list() []*kconn {
	return slices.SortedFunc(maps.Values(k.conns), func(a, b *kconn) int { return cmp.Compare(a.id, b.id) })
}

// known returns the connection of any host that has the switch's GUID and ID or QPN: all may
// be behind one kernel.
func (w *dialWorld) known(guid GUID, of func(*kconn) bool) *kconn {
	for _, k := range w.order {
		for _, c := range k.list() {
			if c.state != "sent" && c.peer == guid && of(c) {
				return c
			}
		}
	}
	return nil
}

// receive serves a MAD from the switch.
func (k *kernel) receive(b []byte) {
	var m Message
	Decode(b, &m)
	if k.deaf {
		return
	}
	if m.Attribute == ConnectRequest {
		k.requested(&m)
		return
	}
	c := k.conns[m.RemoteID]
	if c == nil && m.Attribute == ConnectReject && len(m.Reject.ARI) == 8 {
		c = k.w.known(GUID(binary.BigEndian.Uint64(m.Reject.ARI)), func(c *kconn) bool { return c.remote == m.LocalID })
	}
	switch {
	case c == nil && m.Attribute == DisconnectRequest:
		k.send(&Message{Attribute: DisconnectReply, TID: m.TID, LocalID: m.RemoteID, RemoteID: m.LocalID})
	case c == nil:
	case m.Attribute == MsgReceived && (c.state == "sent" || c.state == "replied") && !c.waited:
		if (m.MRA.Of == RejectedREP) != c.passive {
			k.w.t.Errorf("an MRA of the %s", m.MRA.Of)
		}
		c.waited, c.at = true, k.w.now+m.MRA.Timeout.Duration()
	case m.Attribute == ConnectReject && (c.state == "sent" || c.state == "received" || c.state == "replied"):
		k.forget(c, m.Reject.Reason.String())
	case m.Attribute == ConnectReply && c.state == "established" && c.remote == m.LocalID:
		k.send(&Message{Attribute: ReadyToUse, TID: m.TID, LocalID: c.id, RemoteID: c.remote})
	case m.Attribute == ConnectReply && c.state == "sent":
		k.establish(c, &m)
	case m.Attribute == ReadyToUse && c.state == "replied":
		if x := k.w.m.byID[m.LocalID]; x != nil && x.listener.dialler != nil && x.listener.dialler.state < established {
			k.w.t.Error("a listener is told of a dialler that is not connected")
		}
		c.state, c.events = "established", append(c.events, "established")
	case m.Attribute == DisconnectRequest && c.remote == m.LocalID && c.state != "sent":
		if m.DREQ.QPN != c.qpn {
			k.w.t.Errorf("a DREQ names QPN %#x, the host has %#x", m.DREQ.QPN, c.qpn)
		}
		if k.late > 0 && c.state == "established" {
			c.state, c.at = "left", k.w.now+k.late
			c.message = Message{Attribute: DisconnectReply, TID: m.TID, LocalID: c.id, RemoteID: c.remote}
		}
		if c.state != "left" {
			k.send(&Message{Attribute: DisconnectReply, TID: m.TID, LocalID: c.id, RemoteID: c.remote})
			k.forget(c, "disconnected")
		}
	case m.Attribute == DisconnectReply && c.state == "leaving":
		k.forget(c, "left")
	}
}

// establish serves a dialler's REP: all listeners have to be registered.
func (k *kernel) establish(c *kconn, m *Message) {
	w := k.w
	if w.known(m.Reply.GUID, func(o *kconn) bool { return o.remote == m.LocalID || o.peerQPN == m.Reply.QPN }) != nil {
		w.t.Error("the kernel takes a connection for a stale one")
	}
	c.state, c.remote, c.peer, c.peerQPN, c.reply, c.data = "established", m.LocalID, m.Reply.GUID, m.Reply.QPN, m.Reply, append([]byte(nil), m.Data...)
	k.send(&Message{Attribute: ReadyToUse, TID: m.TID, LocalID: c.id, RemoteID: c.remote})
	w.made++
	if x := w.m.byID[c.remote]; (x != nil && (x.state == replied || x.state == established)) && !w.recordOf(k, c) {
		w.t.Fatalf("%s is connected and not registered: %+v\n%+v", k.ip, c, w.force)
	}
}

// requested serves a REQ: cm_req_handler, and the program that accepts.
func (k *kernel) requested(m *Message) {
	w, q := k.w, &m.Request
	if c := w.known(q.GUID, func(c *kconn) bool { return c.passive && c.remote == m.LocalID }); c != nil {
		switch c.state {
		case "received":
			k.send(&Message{Attribute: MsgReceived, TID: m.TID, LocalID: c.id, RemoteID: c.remote, MRA: MRA{Of: RejectedREQ, Timeout: 24}})
		case "replied":
			k.send(&c.message)
		}
		return
	}
	if w.known(q.GUID, func(c *kconn) bool { return c.peerQPN == q.QPN }) != nil {
		w.t.Error("the kernel takes a REQ for a stale connection's")
	}
	port, ok := q.Port()
	mine := false
	for _, l := range w.listen.Listeners {
		mine = mine || l.Addr() == k.ip && l.Port() == port
	}
	if !ok || !mine || q.Src != w.listen.Group || q.LocalGID != w.listen.Group || q.Dst != k.ip || q.RemoteGID != k.ip {
		w.t.Fatalf("a REQ that no listener has: %+v", q)
	}
	if q.MTU != 3 || q.RetryCount != 5 || q.RNRRetry != 6 || q.AckTimeout != 17 || q.MaxRetries != 15 {
		w.t.Fatalf("the REQ has other values than the dialler's: %+v", q)
	}
	if k.absent { // the ID in the REJ is of no connection
		k.reject(&kconn{id: CommID(w.r.Uint32()), remote: m.LocalID, message: Message{TID: m.TID}}, InvalidServiceID)
		return
	}
	c := &kconn{id: CommID(w.r.Uint32()), remote: m.LocalID, qpn: rocev2.QPN(0x11 + w.r.IntN(1<<20)), psn: rocev2.PSN(w.r.Uint32N(1 << 24)), peer: q.GUID, peerQPN: q.QPN, ask: *q, data: append([]byte(nil), m.Data...), passive: true, state: "received"}
	k.conns[c.id] = c
	c.message = Message{TID: m.TID}
	if k.rejects {
		k.reject(c, ConsumerReject)
		return
	}
	c.at = w.now + k.accepts
}

// advance repeats what is due, and lets the program accept.
func (k *kernel) advance() {
	if k.deaf {
		return
	}
	for _, c := range k.list() {
		switch {
		case c.at > k.w.now:
		case c.state == "received" && k.accepts >= 0:
			c.state, c.tries = "replied", linuxTries
			c.message = Message{Attribute: ConnectReply, TID: c.message.TID, LocalID: c.id, RemoteID: c.remote, Data: []byte("accepted"), Reply: Reply{QPN: c.qpn, PSN: c.psn, GUID: k.guid, RNRRetry: 7, ResponderResources: 3, InitiatorDepth: 4}}
			k.fire(c)
		case c.state == "left": // the program disconnects: only now the DREQ is answered
			k.send(&c.message)
			k.forget(c, "disconnected")
		case c.state == "sent" || c.state == "replied" || c.state == "leaving":
			k.fire(c)
		}
	}
}

// dies makes a host lose all that it knew.
func (k *kernel) dies(deaf bool) {
	for _, c := range k.list() {
		c.state = "gone"
	}
	k.conns, k.deaf = map[CommID]*kconn{}, deaf
}

// evict lets the registrar remove a member, as liveness does.
func (w *dialWorld) evict(k *kernel) {
	for _, key := range w.keys() {
		records := w.force[key]
		for i, r := range records {
			if r.IP == k.ip && w.pending[key] == nil {
				w.force[key] = append(append([]mcast.MemberRecord(nil), records[:i]...), records[i+1:]...)
				w.m.Gone(w.now, key, k.ip, r.QPN, &w.out)
				w.do()
			}
		}
	}
}

const aWhile = 500 * time.Millisecond
