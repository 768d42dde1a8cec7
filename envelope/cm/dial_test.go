// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// only returns the only connection of k.
func (k *kernel) only() *kconn {
	k.w.t.Helper()
	if len(k.conns) != 1 {
		k.w.t.Fatalf("%s has %d connections", k.ip, len(k.conns))
	}
	for _, c := range k.conns {
		return c
	}
	return nil
}

// dialled has host 0 connect, and all listeners answer.
func (w *dialWorld) dialled() *kconn {
	w.t.Helper()
	c := w.order[0].connect(w.listen.Port, "hello")
	w.run(aWhile)
	if c.state != "established" {
		w.t.Fatalf("the dialler is %s: %v, %v", c.state, c.events, w.refusals)
	}
	for _, k := range w.listeners() {
		if x := k.only(); x.state != "established" || x.qpn == 0 || !w.recordOf(k, x) {
			w.t.Fatalf("%s is %s", k.ip, x.state)
		}
	}
	w.settled()
	return c
}

// A dialler is connected when all listeners have answered, and not before; they hear of it
// then. When it leaves they hear that at once, its ACKs are forwarded for a second, and it may
// come again.
func TestDial(t *testing.T) {
	for seed := range uint64(2) {
		w := newDialWorld(t, seed, 1, 3, 1)
		w.listeners()[1].accepts = 3 * time.Second
		c := w.order[0].connect(7471, "hello")
		w.run(2900 * time.Millisecond)
		for _, k := range w.listeners() {
			if x := k.only(); x.state == "established" || len(w.force) > 0 {
				t.Fatalf("%s is %s before all have answered", k.ip, x.state)
			}
		}
		w.run(500 * time.Millisecond)
		if c.state != "established" || len(w.force[w.listen.Group]) != 4 {
			t.Fatalf("the dialler is %s, %d records", c.state, len(w.force[w.listen.Group]))
		}
		for _, k := range w.listeners() {
			if x := k.only(); x.state != "established" || !bytes.HasPrefix(x.data, []byte("hello\x00")) {
				t.Fatalf("%s is %s, private data %q", k.ip, x.state, x.data)
			}
		}
		w.settled()
		w.order[0].disconnect(c, false)
		w.run(aWhile)
		if c.events[0] != "left" || len(w.force) != 1 {
			t.Fatalf("%v, %d groups", c.events, len(w.force))
		}
		for _, k := range w.listeners() {
			if len(k.conns) != 0 {
				t.Errorf("%s has heard nothing", k.ip)
			}
		}
		// Again at once: the session waits for the end of the last one.
		c = w.order[0].connect(7471, "")
		w.run(5 * time.Second)
		if c.state != "established" || len(w.force[w.listen.Group]) != 4 {
			t.Fatalf("again: %s, %v", c.state, w.refusals)
		}
		w.order[0].disconnect(c, false)
		w.run(3 * time.Second)
		w.empty()
	}
}

// A listener that is dialled has a connection until a REQ is not answered, even that no program listens:
// then the REQs are marked, and it has one again when it answers.
func TestUnansweredREQ(t *testing.T) {
	w := newDialWorld(t, 0, 1, 2, 1)
	deaf, absent := w.listeners()[0], w.listeners()[1]
	deaf.deaf, absent.absent = true, true
	first, unanswered := map[netip.Addr]int{}, map[netip.Addr]int{}
	w.filter = func(to netip.Addr, m *Message) bool {
		if m.Attribute == ConnectRequest && m.RemoteID == 0 && to != w.listen.Group {
			if i := slices.IndexFunc(w.out.Packets, func(p Packet) bool { return p.To == to }); w.out.Packets[i].Unanswered {
				unanswered[to]++
			} else {
				first[to]++
			}
		}
		return true
	}
	w.order[0].connect(7471, "")
	w.run(500 * time.Millisecond)
	if !w.m.IsConnected(deaf.ip) || !w.m.IsConnected(absent.ip) {
		t.Error("the first REQ may be answered still")
	}
	w.run(3 * time.Second)
	if first[deaf.ip] != 1 || unanswered[deaf.ip] != 3 || first[absent.ip] < 10 || unanswered[absent.ip] != 0 {
		t.Errorf("REQs: first ones %v, without an answer %v", first, unanswered)
	}
	if !w.m.IsConnected(w.order[0].ip) || w.m.IsConnected(deaf.ip) || !w.m.IsConnected(absent.ip) {
		t.Error("all but the deaf one have a connection")
	}
	deaf.deaf, absent.absent = false, false
	w.run(1500 * time.Millisecond)
	if !w.m.IsConnected(deaf.ip) || !w.m.IsConnected(absent.ip) {
		t.Error("all have answered")
	}
}

// A dialler may have as many connections at once as there are sessions, each with a virtual
// queue pair and a registration of its own. The next one replaces the oldest of its address;
// another address has to wait.
func TestSessions(t *testing.T) {
	w := newDialWorld(t, 0, 2, 2, 2)
	a := w.dialled()
	b := w.order[0].connect(7471, "")
	w.run(aWhile)
	if a.state != "established" || b.state != "established" || len(w.force) != 2 || a.peerQPN == b.peerQPN {
		t.Fatalf("%s, %s, %d registrations", a.state, b.state, len(w.force))
	}
	other := w.order[1].connect(7471, "")
	w.run(aWhile)
	if !slices.Contains(other.events, "no resources") {
		t.Errorf("another dialler: %v", other.events)
	}
	c := w.order[0].connect(7471, "")
	w.run(2 * time.Second)
	if !slices.Contains(a.events, "disconnected") || b.state != "established" || c.state != "established" || len(w.force) != 2 {
		t.Errorf("%v, %s, %s", a.events, b.state, c.state)
	}
	w.settled()
	if !w.close() {
		t.Error("there is no group to close")
	}
	w.run(2 * time.Second)
	if !slices.Contains(b.events, "disconnected") || !slices.Contains(c.events, "disconnected") {
		t.Errorf("%v, %v", b.events, c.events)
	}
	w.empty()
}

// A queue pair that dials again under another ID is the same program, with room or without.
func TestSameQueuePairAgain(t *testing.T) {
	w := newDialWorld(t, 0, 1, 2, 2)
	a := w.dialled()
	again := a.message
	again.LocalID++
	w.m.Input(w.now, w.order[0].ip, w.listen.Group, again.Append(nil), &w.out)
	w.do()
	if x := w.m.byID[a.remote]; x.state != leaving {
		t.Errorf("the old connection is %s", x.state)
	}
}

// The leader's REP has what the dialler is told, and when it leaves the dialler is told that.
func TestLeader(t *testing.T) {
	for _, seed := range []uint64{0, 2} {
		w := newDialWorld(t, seed, 1, 3, 1)
		c := w.dialled()
		leads := w.listen.Replies == Leader
		if bytes.HasPrefix(c.data, []byte("accepted\x00")) != leads || (c.reply.ResponderResources == 3 && c.reply.InitiatorDepth == 4) != leads {
			t.Errorf("replies %d: the dialler has %q, %+v", w.listen.Replies, c.data, c.reply)
		}
		l := w.listeners()
		l[1].disconnect(l[1].only(), false)
		w.run(2 * time.Second)
		if c.state != "established" {
			t.Errorf("replies %d: without a follower the dialler is %s", w.listen.Replies, c.state)
		}
		l[0].disconnect(l[0].only(), false)
		w.run(2 * time.Second)
		if leads != slices.Contains(c.events, "disconnected") {
			t.Errorf("replies %d: without the first listener the dialler is %s", w.listen.Replies, c.state)
		}
		if leads {
			w.run(5 * time.Second)
			w.empty()
		}
	}
}

// A dialler that gives up before it is connected takes the session with it.
func TestDiallerGivesUp(t *testing.T) {
	w := newDialWorld(t, 0, 1, 2, 1)
	w.listeners()[0].accepts = time.Minute
	c := w.order[0].connect(7471, "")
	w.run(aWhile)
	w.order[0].disconnect(c, true)
	w.run(aWhile)
	for _, k := range w.listeners() {
		if len(k.conns) > 0 {
			t.Errorf("%s still waits: %s", k.ip, k.only().state)
		}
	}
	w.empty()
}

// A listener whose RTUs are lost asks for one by its REP.
func TestRTULost(t *testing.T) {
	w := newDialWorld(t, 0, 1, 2, 1)
	lost := 0
	w.filter = func(to netip.Addr, m *Message) bool {
		if m.Attribute == ReadyToUse && to == w.listen.Listeners[0].Addr() {
			lost++
			return lost > rtuTries
		}
		return true
	}
	w.order[0].connect(7471, "")
	w.run(aWhile)
	if x := w.listeners()[0].only(); x.state != "replied" || lost != rtuTries {
		t.Fatalf("%s, %d RTUs", x.state, lost)
	}
	w.run(5 * time.Second)
	if x := w.listeners()[0].only(); x.state != "established" {
		t.Errorf("%s", x.state)
	}
	w.settled()
}

// A REP counts only from the listener that was dialled, and with a queue pair that can be.
func TestForgedREP(t *testing.T) {
	w := newDialWorld(t, 0, 1, 2, 1)
	w.listeners()[0].accepts = time.Minute
	w.order[0].connect(7471, "")
	w.run(aWhile)
	c := w.listeners()[0].only()
	for _, x := range []struct {
		from int
		qpn  rocev2.QPN
		want Drop
	}{{2, 0x111, UnknownConnection}, {0, 0x111, UnknownConnection}, {1, 0xF, BadField}, {1, 0x111, OK}} {
		m := Message{Attribute: ConnectReply, LocalID: c.id, RemoteID: c.remote, Reply: Reply{QPN: x.qpn}}
		w.m.Input(w.now, w.order[x.from].ip, w.listen.Group, m.Append(nil), &w.out)
		if w.out.Drop != x.want || (w.m.byID[c.remote].state == answered) != (x.want == OK) {
			t.Errorf("from host %d with %#x: %v, %s", x.from, uint32(x.qpn), w.out.Drop, w.m.byID[c.remote].state)
		}
	}
}

// What a dialler may be refused for.
func TestDiallerRefused(t *testing.T) {
	w := newDialWorld(t, 0, 1, 2, 1)
	attempt := func(change func(*kconn)) Refusal {
		t.Helper()
		w.refusals = nil
		w.filter = func(netip.Addr, *Message) bool { return false }
		c := w.order[0].connect(7471, "")
		w.filter = func(netip.Addr, *Message) bool { return true }
		change(c)
		w.m.Input(w.now, c.message.Request.Src, w.listen.Group, c.message.Append(nil), &w.out)
		w.do()
		w.order[0].forget(c, "")
		if len(w.refusals) == 0 {
			return Refusal{}
		}
		return w.refusals[0]
	}
	l := w.m.fronts[w.listen.Group]
	l.MTU = 4096
	if r := attempt(func(*kconn) {}); r.Reason != InvalidMTU || r.mtu != 5 {
		t.Errorf("another path MTU: %+v", r)
	}
	l.MTU = 0
	if r := attempt(func(c *kconn) { c.message.Request.ServiceID++ }); r.Reason != InvalidServiceID {
		t.Errorf("another port: %+v", r)
	}
	if r := attempt(func(c *kconn) { // a listener is no dialler
		a := w.listen.Listeners[0].Addr()
		c.message.Request.Src, c.message.Request.LocalGID = a, a
	}); r.Code != NotAuthenticated {
		t.Errorf("a listener dials: %+v", r)
	}
	l.From = []netip.Prefix{netipPrefix(w.listen.Listeners[0].Addr())}
	if r := attempt(func(*kconn) {}); r.Code != NotAuthenticated {
		t.Errorf("another address: %+v", r)
	}
	w.empty()
	if text, ok := w.m.Status(w.listen.Group); !ok || !strings.Contains(text, "connected: 0 of 1") {
		t.Errorf("%q", text)
	}
}

// The dialler's private data is for listeners unless they are not to have it.
func TestStrip(t *testing.T) {
	w := newDialWorld(t, 0, 1, 2, 1)
	w.m.fronts[w.listen.Group].Strip = true
	w.dialled()
	if x := w.listeners()[0].only(); len(bytes.Trim(x.data, "\x00")) > 0 {
		t.Errorf("a listener has %q", x.data)
	}
}

// The registrar's refusal ends a session on both sides.
func TestSessionRejected(t *testing.T) {
	w := newDialWorld(t, 0, 1, 2, 1)
	w.refuse = 1
	c := w.order[0].connect(7471, "")
	w.run(2 * time.Second)
	if !slices.Contains(c.events, "consumer reject") || w.refusals[0].Code != NotRegistered {
		t.Errorf("%v, %+v", c.events, w.refusals)
	}
	w.empty()
}

// Diallers come, go, die and come back, listeners refuse, leave, die and are evicted, groups
// end, registrations are refused, and every MAD may be lost, duplicated and overtaken. No
// dialler is ever connected without all being registered. With the links in order again
// switch and hosts agree, and when all have left nothing is left.
func TestRandomSessions(t *testing.T) {
	made := 0
	for seed := range uint64(100) {
		w := newDialWorld(t, seed, 1+int(seed%3), 1+int(seed%4), 1+int(seed/3%2))
		w.loss, w.delay, w.refuse = 0.3*w.r.Float64(), time.Duration(1+w.r.Int64N(int64(time.Second))), 0.1
		for end := w.now + time.Minute; w.now < end; w.run(time.Duration(w.r.Int64N(int64(time.Second)))) {
			k := w.order[w.r.IntN(len(w.order))]
			var c *kconn
			if all := k.list(); len(all) > 0 {
				c = all[0]
			}
			isListener := slices.Contains(w.listeners(), k)
			switch n := w.r.IntN(100); {
			case isListener && n < 10:
				k.rejects, k.absent = w.r.IntN(4) == 0, w.r.IntN(4) == 0
			case isListener && n < 30:
				k.accepts = time.Duration(w.r.IntN(3000)) * time.Millisecond
			case n < 34: // dies in silence, and starts again
				k.dies(false)
				w.evict(k)
			case c != nil && n < 44:
				k.disconnect(c, w.r.IntN(2) == 0)
			case n < 46:
				w.evict(k)
			case n < 47:
				for _, key := range w.keys() {
					if w.force[key] != nil && w.pending[key] == nil {
						delete(w.force, key)
						w.m.Ended(w.now, key, &w.out)
						w.do()
						break
					}
				}
			case !isListener && (c == nil || n < 55):
				k.connect(7471, "data")
			}
		}
		w.loss, w.delay, w.refuse = 0, time.Millisecond, 0
		for _, k := range w.listeners() {
			k.rejects, k.absent, k.accepts = false, false, time.Millisecond
		}
		w.run(100 * time.Second)
		w.settled()
		for _, k := range w.order {
			for _, c := range k.list() {
				if seed%2 == 0 { // else the group is deleted with its connections
					k.disconnect(c, false)
				}
			}
		}
		w.run(20 * time.Second)
		for again := range 2 {
			if !w.close() || w.close() {
				t.Fatal("there is no group to close, or one to close twice")
			}
			if len(w.m.listeners)+len(w.m.fronts) > 0 {
				t.Fatalf("closed, and left are %d sessions, %d groups", len(w.m.listeners), len(w.m.fronts))
			}
			if err := w.m.Open(w.listen); err != nil && again == 0 {
				t.Fatal(err)
			}
		}
		w.close()
		w.run(20 * time.Second)
		w.empty()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		made += w.made
	}
	if made < 250 {
		t.Errorf("only %d diallers were connected", made)
	}
}
