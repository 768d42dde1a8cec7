// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// connectAll connects all members, one after the other.
func (w *world) connectAll(n int) {
	for _, h := range w.hosts[:n] {
		h.connect()
		w.run(w.now + 100*time.Millisecond)
	}
	w.run(w.now + time.Second)
	if got := w.members(); got != n {
		w.t.Fatalf("%d members, want %d", got, n)
	}
	w.settled()
}

// Nobody is connected before the last of the members is there; then all are. When all have
// left nothing is left, and the next ones can come.
func TestAllConnect(t *testing.T) {
	for seed := range uint64(2) {
		w := newWorld(t, seed, 3, seed == 1)
		for range 2 {
			for _, h := range w.hosts[:2] {
				h.connect()
			}
			w.run(w.now + 6*time.Second)
			if w.members() != 0 {
				t.Fatal("members before all are there")
			}
			w.hosts[2].connect()
			w.run(w.now + 500*time.Millisecond)
			if w.members() != 3 {
				t.Fatalf("%d members", w.members())
			}
			w.settled()
			for _, h := range w.hosts[:3] {
				h.disconnect(false)
			}
			w.run(w.now + 3*time.Second)
			w.empty()
		}
	}
}

// A member that leaves is forwarded its ACKs for a second, then the others go on without.
func TestMemberLeaves(t *testing.T) {
	w := newWorld(t, 0, 3, false)
	w.connectAll(3)
	w.hosts[1].disconnect(false)
	w.run(w.now + 500*time.Millisecond)
	if len(w.inForce) != 3 || w.hosts[1].now != nil {
		t.Fatalf("%d records half a second after the DREQ", len(w.inForce))
	}
	w.run(w.now + time.Second)
	if len(w.inForce) != 2 {
		t.Fatalf("%d records 1.5 s after the DREQ", len(w.inForce))
	}
	w.hosts[1].connect() // and comes back, with other numbers, while the others go on
	w.run(w.now + time.Second)
	if w.members() != 3 {
		t.Fatalf("%d members", w.members())
	}
	w.settled()
	w.hosts[0].disconnect(true)
	w.hosts[1].disconnect(true)
	w.run(w.now + 4*time.Second)
	if w.hosts[2].now.ended != "disconnected" {
		t.Fatalf("the last member is %q: it has nobody left", w.hosts[2].now.ended)
	}
	w.empty()
}

// A host that has restarted replaces itself: the switch has not seen its death.
func TestHostRestarts(t *testing.T) {
	w := newWorld(t, 0, 3, false)
	w.connectAll(3)
	h := w.hosts[1]
	old := h.qpn()
	h.all = map[CommID]*hostConn{} // all that it knew
	h.connect()
	w.run(w.now + 2*time.Second)
	w.settled()
	if w.members() != 3 || h.qpn() == old {
		t.Fatalf("%d members", w.members())
	}
}

// A program that waits for the others and dies says so: the others wait for another one.
func TestMemberGivesUp(t *testing.T) {
	w := newWorld(t, 0, 3, false)
	w.hosts[0].connect()
	w.run(w.now + time.Second)
	w.hosts[0].disconnect(true)
	w.run(w.now + time.Second)
	w.empty()
	w.connectAll(3)
}

// refusal returns the only refusal that there was, and forgets it.
func (w *world) refusal() Refusal {
	w.t.Helper()
	if len(w.refusalsSeen) != 1 {
		w.t.Fatalf("refusals %+v, want one", w.refusalsSeen)
	}
	r := w.refusalsSeen[0]
	w.refusalsSeen = nil
	return r
}

func TestRefusedREQs(t *testing.T) {
	w := newWorld(t, 0, 3, true)
	attempt := func(h *host) string {
		t.Helper()
		h.connect()
		w.run(w.now + time.Second)
		return h.now.ended
	}
	w.port++
	if got := attempt(w.hosts[0]); got != "invalid service ID" || w.refusal().Reason != InvalidServiceID {
		t.Errorf("another port: %q", got)
	}
	w.port--
	key := w.key
	w.key = []byte("another secret of thirty-two byt")
	if got := attempt(w.hosts[0]); got != "consumer reject" || w.refusal().Code != NotAuthenticated {
		t.Errorf("another key: %q", got)
	}
	w.key = nil
	if got := attempt(w.hosts[0]); got != "consumer reject" || w.refusal().Code != NotAuthenticated {
		t.Errorf("no key: %q", got)
	}
	w.key = key
	w.hosts[0].connect()
	w.run(w.now + time.Second)
	w.mtu = 5
	if got := attempt(w.hosts[1]); got != "invalid MTU" || w.refusal().mtu != 3 {
		t.Errorf("another path MTU: %q", got)
	}
	w.mtu = 3
	w.hosts[1].connect()
	w.hosts[2].connect()
	w.run(w.now + time.Second)
	w.settled()
	if got := attempt(w.hosts[3]); got != "no resources" || w.refusal().Reason != NoResources {
		t.Errorf("one too many: %q", got)
	}
	if w.members() != 3 {
		t.Errorf("%d members", w.members())
	}
}

// The first member's path MTU is the group's until all have gone.
func TestFirstMemberChoosesMTU(t *testing.T) {
	w := newWorld(t, 0, 3, false)
	for _, mtu := range []uint8{5, 1} {
		w.mtu = mtu
		w.connectAll(3)
		for _, h := range w.hosts[:3] {
			h.disconnect(false)
		}
		w.run(w.now + 3*time.Second)
		w.empty()
	}
}

// Only an address of the list may connect where the group has no key.
func TestFrom(t *testing.T) {
	w := newWorld(t, 0, 2, false)
	w.m.listeners[w.group].From = nil
	for _, h := range w.hosts[:2] {
		w.m.listeners[w.group].From = append(w.m.listeners[w.group].From, netipPrefix(h.ip))
	}
	w.hosts[2].connect()
	c := w.hosts[2].now
	w.run(w.now + time.Second)
	if c.ended != "consumer reject" || w.refusal().Code != NotAuthenticated {
		t.Errorf("%q", c.ended)
	}
	w.connectAll(2)
}

// A REQ whose addresses are not the packet's has no answer: it would go to somebody else.
func TestWrongSource(t *testing.T) {
	w := newWorld(t, 0, 2, false)
	h := w.hosts[0]
	h.connect()
	for i, change := range []func(*Request){
		func(q *Request) { q.Src = w.hosts[1].ip }, func(q *Request) { q.LocalGID = w.hosts[1].ip },
		func(q *Request) { q.Dst = w.hosts[1].ip }, func(q *Request) { q.RemoteGID = w.hosts[1].ip },
	} {
		m := h.now.sent
		m.LocalID++
		change(&m.Request)
		w.m.Input(w.now, h.ip, w.group, m.Append(nil), &w.out)
		if w.out.Drop != WrongSource || len(w.out.Packets)+len(w.m.byID) != 0 {
			t.Errorf("change %d: %v, %d packets", i, w.out.Drop, len(w.out.Packets))
		}
	}
}

// Members wait for the others for a while, and hear how many were there.
func TestIncomplete(t *testing.T) {
	w := newWorld(t, 0, 3, false)
	w.hosts[0].connect()
	w.run(w.now + 10*time.Second)
	w.hosts[1].connect()
	c := w.hosts[1].now
	w.run(w.now + 25*time.Second)
	if r := w.refusal(); r.Code != Incomplete || r.Text != "2 of 3 members have connected" {
		t.Errorf("%+v", r)
	}
	w.run(w.now + 10*time.Second)
	if c.ended != "consumer reject" || w.refusal().Code != Incomplete {
		t.Errorf("the second one: %q", c.ended)
	}
	w.empty()
}

// What the registrar rejects is said to the members.
func TestRegistrarRejects(t *testing.T) {
	w := newWorld(t, 0, 3, false)
	w.refuse = 1
	for _, h := range w.hosts[:3] {
		h.connect()
	}
	w.run(w.now + time.Second)
	for _, h := range w.hosts[:3] {
		if h.now.ended != "consumer reject" {
			t.Errorf("%s: %q", h.ip, h.now.ended)
		}
	}
	if len(w.refusalsSeen) != 3 || w.refusalsSeen[0].Code != NotRegistered || w.refusalsSeen[0].Text != "not today" {
		t.Errorf("%+v", w.refusalsSeen)
	}
	w.empty()
	w.refuse, w.refusalsSeen = 0, nil
	w.connectAll(3)
	w.hosts[2].disconnect(false)
	w.run(w.now + 3*time.Second)
	w.refuse = 1
	w.hosts[2].connect()
	c := w.hosts[2].now
	w.run(w.now + time.Second)
	if c.ended != "consumer reject" || w.members() != 2 {
		t.Errorf("the one that comes back: %q, %d members", c.ended, w.members())
	}
	w.settled()
}

// A member that was evicted, and all when the group has ended, get a DREQ.
func TestEndsOfMembership(t *testing.T) {
	w := newWorld(t, 0, 4, false)
	w.connectAll(4)
	w.evict(w.hosts[1].ip)
	w.run(w.now + time.Second)
	if w.hosts[1].now.ended != "disconnected" || w.members() != 3 {
		t.Fatalf("evicted: %q", w.hosts[1].now.ended)
	}
	w.settled()
	w.inForce = nil
	w.m.Ended(w.now, w.group, &w.out)
	w.do()
	w.run(w.now + time.Second)
	for _, h := range w.hosts[:4] {
		if h.now.ended != "disconnected" {
			t.Errorf("%s: %q", h.ip, h.now.ended)
		}
	}
	w.empty()
	w.connectAll(4)
	w.inForce = nil
	if !w.m.Close(w.now, w.group, &w.out) {
		t.Error("there is no group to close")
	}
	w.do()
	w.run(w.now + time.Second)
	w.empty()
	if w.members() != 0 {
		t.Errorf("%d members", w.members())
	}
	w.hosts[0].connect()
	c := w.hosts[0].now
	w.run(w.now + time.Second)
	if c.ended != "invalid service ID" {
		t.Errorf("after the end: %q", c.ended)
	}
}

// A host that is silent when it should answer is forgotten.
func TestSilentHost(t *testing.T) {
	w := newWorld(t, 0, 3, false)
	w.hosts[0].connect()
	w.run(w.now + time.Second)
	w.killed[w.hosts[0].now] = true // takes no REP
	w.hosts[1].connect()
	w.hosts[2].connect()
	w.run(w.now + time.Second)
	if len(w.inForce) != 3 {
		t.Fatalf("%d records", len(w.inForce))
	}
	w.hosts[0].all = map[CommID]*hostConn{}
	w.hosts[0].now = nil
	w.run(w.now + (replyTries+leaveTries+3)*time.Second)
	if len(w.inForce) != 2 || w.members() != 2 {
		t.Errorf("%d records, %d members", len(w.inForce), w.members())
	}
	w.settled()
}

// A DREQ of a connection from before a restart of the switch is answered, and reported.
func TestUnknownDREQ(t *testing.T) {
	w := newWorld(t, 0, 2, false)
	w.connectAll(2)
	w.m = NewManager(Config{Seed: [32]byte{1}})
	w.inForce = nil
	h := w.hosts[0]
	c := h.now
	h.disconnect(false)
	w.m.Input(w.now, h.ip, w.group, c.sent.Append(nil), &w.out)
	if w.out.Left == nil || w.out.Left.QPN != 0x123456 || w.out.Drop != UnknownConnection {
		t.Fatalf("%+v, %v", w.out.Left, w.out.Drop)
	}
	w.do()
	w.run(w.now + time.Second)
	if c.state != "gone" || c.ended != "" {
		t.Errorf("the host is %s, %q", c.state, c.ended)
	}
}

// A DREQ ends a connection only from its host, and with the right queue pair.
func TestForgedDREQ(t *testing.T) {
	w := newWorld(t, 0, 2, false)
	w.connectAll(2)
	c := w.hosts[0].now
	for _, x := range []struct {
		from int
		qpn  rocev2.QPN
		want Drop
	}{{1, 0x123456, UnknownConnection}, {0, 0x123457, BadField}, {0, 0x123456, OK}} {
		m := Message{Attribute: DisconnectRequest, LocalID: c.id, RemoteID: c.remote, DREQ: DREQ{QPN: x.qpn}}
		w.m.Input(w.now, w.hosts[x.from].ip, w.group, m.Append(nil), &w.out)
		if w.out.Drop != x.want || (w.m.byID[c.remote].state == lingering) != (x.want == OK) {
			t.Errorf("from host %d with %#x: %v, %s", x.from, uint32(x.qpn), w.out.Drop, w.m.byID[c.remote].state)
		}
	}
}

// While a registration is under way there is no other one to make.
func TestOneRegistrationAtATime(t *testing.T) {
	w := newWorld(t, 0, 2, false)
	for _, h := range w.hosts[:2] {
		h.connect()
	}
	for w.registering == nil {
		w.run(w.now + 10*time.Millisecond)
	}
	if _, records, ok := w.m.Wanted(w.group); ok {
		t.Errorf("wanted again: %v", records)
	}
}
