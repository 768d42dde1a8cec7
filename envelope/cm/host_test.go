// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// host is Linux' side of connections: what its kernel sends, repeats and checks (docs/CM.md:
// cm_rep_handler, cm_dreq_handler).
type host struct {
	w    *world
	ip   netip.Addr
	guid GUID
	now  *hostConn            // the connection that its program has; nil: none
	all  map[CommID]*hostConn // the connections that the kernel has, by its own ID
	// silent: it has died, or its one DREQ may be lost. The switch cannot know; liveness does.
	silent bool
	deaf   bool       // its program does not look at a DREQ
	reuses rocev2.QPN // its next queue pair has this number; 0: any
}

// hostConn is a connection in the kernel of a host.
type hostConn struct {
	id     CommID
	qpn    rocev2.QPN
	psn    rocev2.PSN
	remote CommID
	guid   GUID // the switch's
	reply  Reply
	state  string // request, established, leaving, gone
	// sent is the last message that is repeated, at next for tries more times.
	sent  Message
	next  time.Duration
	tries int
	ended string // what the program was told
}

const (
	linuxRepeat = 4608 * time.Millisecond
	linuxTries  = 16
)

// connect makes the program connect: rdma_connect. Under a key it has no nonce of the switch yet.
func (h *host) connect() { h.connectWith(0, 0) }

// connectProven makes the program connect with a nonce that the switch has given it.
func (h *host) connectProven() {
	qpn := rocev2.QPN(0x11 + h.w.r.IntN(1<<20))
	h.connectWith(h.w.m.nonces.now(claimant{h.w.group, h.ip, qpn}, h.w.now), qpn)
}

// connectWith makes the program connect with a nonce, and with the queue pair that it has asked for the nonce with; 0: a
// new one.
func (h *host) connectWith(nonce uint64, qpn rocev2.QPN) {
	w := h.w
	c := &hostConn{id: CommID(w.r.Uint32()), qpn: rocev2.QPN(0x11 + w.r.IntN(1<<20)), psn: rocev2.PSN(w.r.Uint32N(1 << 24)), state: "request"}
	if h.reuses != 0 {
		c.qpn = h.reuses
	}
	if qpn != 0 {
		c.qpn = qpn
	}
	h.all[c.id], h.now = c, c
	c.sent = Message{Attribute: ConnectRequest, TID: w.r.Uint64(), LocalID: c.id, Data: w.privateData(h, c, nonce), Request: Request{
		ServiceID: servicePrefix | uint64(w.port), GUID: h.guid, QPN: c.qpn, RemoteTimeout: 20, FlowControl: true, PSN: c.psn, LocalTimeout: 20, RetryCount: 7, PKey: 0xFFFF,
		MTU: w.mtu, RNRRetry: 7, MaxRetries: 15, LocalGID: h.ip, RemoteGID: w.group, HopLimit: 64, AckTimeout: 17, Src: h.ip, Dst: w.group,
	}}
	h.repeat(c, linuxTries)
}

// disconnect makes the program disconnect; a program that is killed sends one DREQ.
func (h *host) disconnect(killed bool) {
	c := h.now
	h.now, h.silent = nil, h.silent || killed
	switch c.state {
	case "established":
		c.state = "leaving"
		c.sent = Message{Attribute: DisconnectRequest, TID: h.w.r.Uint64(), LocalID: c.id, RemoteID: c.remote, DREQ: DREQ{c.reply.QPN}}
		tries := linuxTries
		if killed {
			tries = 1
		}
		h.repeat(c, tries)
	case "request": // cm_destroy_id in IB_CM_REQ_SENT
		h.send(&Message{Attribute: ConnectReject, TID: c.sent.TID, LocalID: c.id, Reject: Reject{Of: RejectedOther, Reason: TimedOut, ARI: binary.BigEndian.AppendUint64(nil, uint64(h.guid))}})
		h.forget(c)
	}
}

// nonceIn returns the nonce of a REJ with Unproven.
func nonceIn(b []byte) (nonce uint64, ok bool) {
	if len(b) < 3+nonceLen || b[1] != byte(Unproven) || b[2] != nonceLen {
		return 0, false
	}
	return binary.BigEndian.Uint64(b[3:]), true
}

func (h *host) forget(c *hostConn) {
	c.state = "gone"
	delete(h.all, c.id)
}

func (h *host) repeat(c *hostConn, tries int) {
	c.tries = tries
	h.fire(c)
}

func (h *host) fire(c *hostConn) {
	if c.tries == 0 {
		c.ended = "unreachable"
		h.forget(c)
		return
	}
	c.tries--
	c.next = h.w.now + linuxRepeat
	h.send(&c.sent)
}

func (h *host) send(m *Message) {
	h.w.transmit(h.ip, h.w.group, m.Append(nil))
}

// receive serves a MAD from the switch.
func (h *host) receive(b []byte) {
	var m Message
	if d := Decode(b, &m); d != OK {
		h.w.t.Fatalf("the switch sends a MAD that is refused: %v", d)
	}
	c := h.all[m.RemoteID]
	switch m.Attribute {
	case MsgReceived:
		if c != nil && c.state == "request" && !h.w.waited[c] { // only the first counts
			h.w.waited[c] = true
			c.next = h.w.now + m.MRA.Timeout.Duration()
		}
	case ConnectReject:
		if c != nil && c.state == "request" && m.Reject.Reason != TimedOut {
			c.ended = m.Reject.Reason.String()
			h.forget(c)
			if nonce, ok := nonceIn(m.Data); ok && h.now == c {
				h.connectWith(nonce, c.qpn)
			}
		}
	case ConnectReply:
		h.reply(c, &m)
	case DisconnectRequest:
		switch {
		case c == nil:
			h.send(&Message{Attribute: DisconnectReply, TID: m.TID, LocalID: m.RemoteID, RemoteID: m.LocalID})
		case m.DREQ.QPN != c.qpn:
			h.w.t.Fatalf("a DREQ names QPN %#x, the host has %#x", m.DREQ.QPN, c.qpn)
		case h.deaf && c.state == "established":
		case m.LocalID == c.remote && c.state != "request":
			h.send(&Message{Attribute: DisconnectReply, TID: m.TID, LocalID: c.id, RemoteID: c.remote})
			c.ended = "disconnected"
			h.forget(c)
		}
	case DisconnectReply:
		if c != nil && c.state == "leaving" {
			h.forget(c)
		}
	}
}

func (h *host) reply(c *hostConn, m *Message) {
	switch {
	case c == nil:
		return
	case c.state == "established" && c.remote == m.LocalID: // duplicate
		h.send(&Message{Attribute: ReadyToUse, TID: m.TID, LocalID: c.id, RemoteID: c.remote})
		return
	case c.state != "request":
		return
	}
	for _, x := range h.w.hosts { // members may be behind one kernel
		for _, o := range x.all {
			if o == c || o.state == "request" || o.guid != m.Reply.GUID {
				continue
			}
			if o.remote == m.LocalID {
				return
			}
			if o.reply.QPN != m.Reply.QPN {
				continue
			}
			h.send(&Message{Attribute: ConnectReject, TID: m.TID, LocalID: c.id, RemoteID: m.LocalID, Reject: Reject{Of: RejectedREP, Reason: StaleConnection}})
			h.forget(c)
			c.ended = "stale"
			h.w.t.Errorf("the kernel takes the connection of %s for a stale one", h.ip)
			return
		}
	}
	if h.w.killed[c] {
		return
	}
	c.state, c.remote, c.guid, c.reply, c.tries = "established", m.LocalID, m.Reply.GUID, m.Reply, 0
	h.send(&Message{Attribute: ReadyToUse, TID: m.TID, LocalID: c.id, RemoteID: c.remote})
	h.silent = false
	h.w.connected(h, c)
}

// advance repeats what is due.
func (h *host) advance() {
	for _, c := range h.all {
		if (c.state == "request" || c.state == "leaving") && c.next <= h.w.now {
			h.fire(c)
		}
	}
}
