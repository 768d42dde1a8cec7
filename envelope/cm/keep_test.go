// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// throughFile is what becomes of connections in a file.
func throughFile(t *testing.T, all []Kept) (read []Kept) {
	t.Helper()
	b, err := json.Marshal(all)
	if err == nil {
		err = json.Unmarshal(b, &read)
	}
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// TestKeptForm: a connection in a state file has the form of all releases.
func TestKeptForm(t *testing.T) {
	k := Kept{
		State: "established", Record: mcast.MemberRecord{
			IP: netip.MustParseAddr("10.0.0.2"), QPN: 0x12, SQPSN: 1, RQPSN: 2, Window: mcast.Window{Base: 4096, Len: 8192, RKey: 7}, ReceiveOnly: true, Reply: mcast.ReplyDiscarded,
		}, Dialled: true, ID: 3, Peer: 4, GUID: 5, PeerGUID: 6,
	}
	const want = `{"State":"established","Record":{"IP":"10.0.0.2","QPN":18,"SQPSN":1,"RQPSN":2,"ReceiveOnly":true,"Role":2,"Window":{"Base":4096,"Len":8192,"RKey":7}},` +
		`"Dialled":true,"ID":3,"Peer":4,"GUID":5,"PeerGUID":6}`
	if b, err := json.Marshal(&k); err != nil || string(b) != want {
		t.Errorf("%s, want %s; %v", b, want, err)
	}
}

// restart gives w another manager, which knows what the file has.
func (w *world) restart(registered bool) {
	w.t.Helper()
	l := w.m.listeners[w.group]
	kept := throughFile(w.t, w.file.has)
	reg := &Registration{QPN: l.QPN, MTU: l.MTU, Records: w.inForce}
	if !registered || w.inForce == nil {
		reg, w.inForce = nil, nil
	}
	w.registering, w.file = nil, file{has: kept}
	w.m = NewManager(Config{Seed: [32]byte{99}, Keys: w.m.cfg.Keys})
	listen := l.Listen
	if l.anyMTU {
		listen.MTU = 0
	}
	if err := w.m.Restore(w.now, listen, reg, kept, &w.out); err != nil {
		w.t.Fatal(err)
	}
	w.do()
}

// Members of a registered group go on after a restart of the switch: they leave, are replaced
// and come back as before. One that was leaving is out soon.
func TestRestartConnected(t *testing.T) {
	for seed := range uint64(2) {
		w := newWorld(t, seed, 4, seed == 1)
		w.connectAll(4)
		w.hosts[3].disconnect(false)
		w.run(w.now + 300*time.Millisecond) // it lingers
		w.restart(true)
		if len(w.inForce) != 4 {
			t.Fatalf("%d records", len(w.inForce))
		}
		w.run(w.now + 2*time.Second)
		if len(w.inForce) != 3 || w.members() != 3 {
			t.Fatalf("%d records, %d members", len(w.inForce), w.members())
		}
		w.settled()
		w.hosts[3].connect()
		w.run(w.now + time.Second)
		w.settled()
		if w.members() != 4 {
			t.Fatalf("%d members", w.members())
		}
		for _, h := range w.hosts[:4] {
			h.disconnect(false)
		}
		w.run(w.now + 3*time.Second)
		w.empty()
		w.connectAll(4)
	}
}

// Members that wait for the others repeat their REQs, and are connected after a restart.
func TestRestartWaiting(t *testing.T) {
	w := newWorld(t, 0, 3, false)
	w.hosts[0].connect()
	w.hosts[1].connect()
	w.run(w.now + time.Second)
	w.restart(false)
	h := w.hosts[0]
	w.m.Input(w.now, h.ip, w.group, h.now.sent.Append(nil), &w.out) // before the DREP
	w.do()
	if c := w.m.listeners[w.group].members[h.ip]; c == nil || c.state != requested {
		t.Error("a REQ that is repeated at once is not served")
	}
	w.hosts[2].connect()
	w.run(w.now + 10*time.Second)
	if w.members() != 3 {
		t.Fatalf("%d members: %+v", w.members(), w.refusalsSeen)
	}
	w.settled()
}

// Members whose group is registered no more get a DREQ.
func TestRestartWithoutRegistration(t *testing.T) {
	w := newWorld(t, 0, 3, false)
	w.connectAll(3)
	w.restart(false)
	w.run(w.now + time.Second)
	for _, h := range w.hosts[:3] {
		if h.now.ended != "disconnected" {
			t.Errorf("%s: %q", h.ip, h.now.ended)
		}
	}
	if len(w.refusalsSeen) < 3 || w.refusalsSeen[0] != restarted {
		t.Errorf("%+v", w.refusalsSeen)
	}
	w.empty()
	w.connectAll(3)
}

// A REP that was not answered yet is sent again.
func TestRestartBeforeRTU(t *testing.T) {
	w := newWorld(t, 0, 2, false)
	w.connectAll(2)
	for _, c := range w.m.byID {
		c.state = replied // as if the RTU had been lost
	}
	w.restart(true)
	w.run(w.now + time.Second)
	w.settled()
}

// restart gives w another manager, which knows what the file has, and no registrations.
func (w *dialWorld) restart() {
	w.t.Helper()
	for len(w.flights) > 0 { // a restart takes longer, and what hosts send meanwhile is lost
		f := w.flights[0]
		if w.flights = w.flights[1:]; f.to != w.listen.Group {
			w.hosts[f.to].receive(f.mad)
		}
	}
	kept := throughFile(w.t, w.file.has)
	w.force, w.pending, w.due = map[netip.Addr][]mcast.MemberRecord{}, map[netip.Addr]func(){}, map[netip.Addr]time.Duration{}
	w.file = file{has: kept}
	w.m = NewManager(Config{Seed: [32]byte{98}})
	if err := w.m.Restore(w.now, w.listen, nil, kept, &w.out); err != nil {
		w.t.Fatal(err)
	}
	w.do()
}

// A dialler and its listeners get a DREQ after a restart, and may be connected again at once.
func TestRestartDialled(t *testing.T) {
	for seed := range uint64(3) {
		w := newDialWorld(t, seed, 1, 3, 1)
		c := w.dialled()
		w.restart()
		w.run(aWhile)
		if c.events[len(c.events)-1] != "disconnected" {
			t.Errorf("the dialler: %v", c.events)
		}
		for _, k := range w.listeners() {
			if len(k.conns) > 0 {
				t.Errorf("%s has heard nothing", k.ip)
			}
		}
		if len(w.refusals) < 4 || w.refusals[len(w.refusals)-1] != restarted {
			t.Errorf("%+v", w.refusals)
		}
		w.dialled()
	}
}

// A restart before the dialler is connected ends the exchange with the listeners, and the
// dialler's next REQ begins it anew.
func TestRestartDialling(t *testing.T) {
	w := newDialWorld(t, 0, 1, 3, 1)
	w.listeners()[1].accepts = 4 * time.Second
	c := w.order[0].connect(7471, "")
	w.run(aWhile)
	w.restart()
	w.run(aWhile)
	for _, k := range w.listeners() {
		if len(k.conns) > 0 {
			t.Errorf("%s still waits: %s", k.ip, k.only().state)
		}
	}
	w.run(15 * time.Second)
	if c.state != "established" || len(w.force) != 1 {
		t.Errorf("the dialler is %s: %v", c.state, c.events)
	}
	w.settled()
}

// A restart at any moment of an exchange leaves nobody with a connection that the switch does not have:
// what a host has heard is in the file.
func TestRestartAtAnyMomentDialled(t *testing.T) {
	again := 0
	for seed := range uint64(60) {
		w := newDialWorld(t, seed, 1, 3, 1)
		c := w.order[0].connect(7471, "")
		w.run(time.Duration(w.r.Int64N(int64(300 * time.Millisecond))))
		w.restart()
		w.run(20 * time.Second)
		w.settled()
		if c.state != "established" && c.state != "gone" {
			t.Fatalf("seed %d: the dialler is %s", seed, c.state)
		}
		if c.state == "established" {
			again++
		}
		for _, k := range w.listeners() {
			for _, x := range k.list() {
				if x.state != "established" || c.state != "established" {
					t.Fatalf("seed %d: %s has a connection, %s; the dialler's is %s", seed, k.ip, x.state, c.state)
				}
			}
		}
		if c.state == "gone" {
			w.dialled()
		}
	}
	if again == 0 || again == 60 {
		t.Errorf("%d of 60 diallers still waited", again)
	}
}

// The same where everybody connects, with members that come back on other queue pairs. Those whose
// registration the file has go on.
func TestRestartAtAnyMomentConnected(t *testing.T) {
	stayed, ended := 0, 0
	for seed := range uint64(60) {
		w := newWorld(t, seed, 3, false)
		if seed%3 == 0 {
			w.connectAll(3)
		}
		for _, h := range w.hosts[:3] {
			if h.now == nil {
				h.connect()
			}
			w.run(w.now + time.Duration(w.r.Int64N(int64(100*time.Millisecond))))
		}
		if h := w.hosts[1]; seed%2 == 0 && h.now.state == "established" {
			h.reuses = h.now.qpn
			h.disconnect(true)
			h.connect()
		}
		w.run(w.now + time.Duration(w.r.Int64N(int64(300*time.Millisecond))))
		before := w.members()
		w.restart(seed%5 != 0)
		w.run(w.now + 40*time.Second)
		for _, h := range w.hosts[:3] {
			if h.now.state == "gone" {
				h.connect()
				ended++
			}
		}
		w.run(w.now + 40*time.Second)
		w.settled()
		if w.members() != 3 {
			t.Fatalf("seed %d: %d members, %d before: %+v", seed, w.members(), before, w.refusalsSeen)
		}
		if before == 3 {
			stayed++
		}
	}
	if stayed == 0 || ended == 0 {
		t.Errorf("%d, %d", stayed, ended)
	}
}

// A member that was connected before the file had its registration gets a DREQ: what it has sent is lost.
func TestRestartBeforeRegistrationIsKept(t *testing.T) {
	w := newWorld(t, 0, 2, false)
	w.connectAll(2)
	for i := range w.file.has {
		w.file.has[i].State = requested.String()
	}
	w.restart(false)
	w.run(w.now + time.Second)
	for _, h := range w.hosts[:2] {
		if h.now.ended != "disconnected" {
			t.Errorf("%s: %q", h.ip, h.now.ended)
		}
	}
	w.empty()
	w.connectAll(2)
}
