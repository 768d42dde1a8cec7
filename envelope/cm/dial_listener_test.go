// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// A listener that refuses, or does not answer in time, is named to the dialler, and the
// others hear of it.
func TestListenerRefuses(t *testing.T) {
	w := newDialWorld(t, 0, 1, 3, 1)
	w.listeners()[1].rejects, w.listeners()[2].accepts = true, time.Minute
	c := w.order[0].connect(7471, "")
	w.run(aWhile)
	want := "listener " + w.listen.Listeners[1].String() + " has refused: consumer reject"
	if !slices.Contains(c.events, "consumer reject") || !slices.ContainsFunc(w.refusals, func(r Refusal) bool { return r.Code == ListenerRefused && r.Text == want }) {
		t.Errorf("%v, %+v", c.events, w.refusals)
	}
	for _, k := range w.listeners() {
		if len(k.conns) > 0 {
			t.Errorf("%s still waits: %s", k.ip, k.only().state)
		}
	}
	w.run(2 * time.Second)
	w.empty()
	w.refusals = nil
	w.listeners()[1].rejects, w.listeners()[1].deaf, w.listeners()[2].accepts = false, true, 0
	c = w.order[0].connect(7471, "")
	w.run(31 * time.Second)
	want = "2 of 3 listeners have answered, " + w.listen.Listeners[1].String() + " has not"
	if !slices.Contains(c.events, "consumer reject") || !slices.ContainsFunc(w.refusals, func(r Refusal) bool { return r.Code == Incomplete && r.Text == want }) {
		t.Errorf("%v, %+v", c.events, w.refusals)
	}
	w.run(2 * time.Second)
	for _, k := range w.listeners() {
		if len(k.conns) > 0 {
			t.Errorf("%s still waits: %s", k.ip, k.only().state)
		}
	}
	w.empty()
}

// A listener whose program does not listen yet is dialled until it does, and at once then. If it
// does not in time, the dialler is told so.
func TestListenerIsLate(t *testing.T) {
	w := newDialWorld(t, 2, 1, 3, 1)
	late := w.listeners()[1]
	dialled := 0
	w.filter = func(to netip.Addr, m *Message) bool {
		if m.Attribute == ConnectRequest && to == late.ip {
			dialled++
		}
		return true
	}
	late.absent = true
	c := w.order[0].connect(7471, "")
	w.run(10 * time.Second)
	if most := int(10*time.Second/redialInterval) + 1; c.state != "sent" || dialled < most-3 || dialled > most {
		t.Fatalf("%s, dialled %d times in 10 s", c.state, dialled)
	}
	if text, _ := w.m.Status(w.listen.Group); !strings.Contains(text, late.ip.String()+" (dialling: no program listens there)") {
		t.Errorf("%q", text)
	}
	late.absent = false
	w.run(2*redialInterval + aWhile)
	if c.state != "established" || len(w.force[w.listen.Group]) != 4 {
		t.Fatalf("%s, %v", c.state, w.refusals)
	}
	w.settled()
	w.order[0].disconnect(c, false)
	w.run(5 * time.Second)
	w.empty()

	for _, c := range []struct {
		finally func()
		want    Refusal
	}{
		{func() {}, Refusal{Code: Incomplete, Text: "2 of 3 listeners have answered, " + w.listen.Listeners[1].String() + " has not: no program listens there"}},
		{func() { late.absent, late.accepts = false, -1 }, Refusal{Code: Incomplete, Text: "2 of 3 listeners have answered, " + w.listen.Listeners[1].String() + " has not"}},
		{func() { late.absent, late.rejects = false, true }, Refusal{Code: ListenerRefused, Text: "listener " + w.listen.Listeners[1].String() + " has refused: consumer reject"}},
	} {
		w.refusals, late.absent = nil, true
		x := w.order[0].connect(7471, "")
		w.run(20 * time.Second)
		c.finally()
		w.run(4 * time.Second)
		for _, k := range w.listeners() { // one that takes its time sends MRAs, which say that it listens
			for _, x := range k.list() {
				k.send(&Message{Attribute: MsgReceived, LocalID: x.id, RemoteID: x.remote, MRA: MRA{Of: RejectedREQ, Timeout: 20}})
			}
		}
		w.run(8 * time.Second)
		c.want.Reason = ConsumerReject
		if !slices.Contains(x.events, "consumer reject") || !slices.Contains(w.refusals, c.want) {
			t.Errorf("%v, %+v, want %+v", x.events, w.refusals, c.want)
		}
		w.run(2 * time.Second)
		w.empty()
	}
}

// A dialler that leaves at once may be faster than the file that the listeners' RTUs wait for:
// they are connected before they are disconnected.
func TestDiallerIsFast(t *testing.T) {
	held := 0
	for seed := range uint64(20) {
		w := newDialWorld(t, seed, 1, 3, 1)
		c := w.order[0].connect(7471, "")
		for i := 0; c.state != "established" && i < 1000; i++ {
			w.run(5 * time.Millisecond)
		}
		var all []*kconn
		for _, k := range w.listeners() {
			all = append(all, k.only())
		}
		w.run(5 * time.Millisecond)
		for _, p := range w.file.waiting {
			var m Message
			if Decode(p.MAD, &m) == OK && m.Attribute == ReadyToUse {
				held++
			}
		}
		w.delay = 50 * time.Millisecond // what is sent together may change places
		w.order[0].disconnect(c, false)
		w.run(aWhile)
		for i, x := range all {
			if !slices.Equal(x.events, []string{"established", "disconnected"}) {
				t.Errorf("seed %d: listener %d: %v", seed, i, x.events)
			}
		}
	}
	if held == 0 {
		t.Error("no RTU has waited for the file")
	}
}

// A listener that leaves or dies goes alone; without any the dialler is told.
func TestListenersLeave(t *testing.T) {
	w := newDialWorld(t, 0, 1, 3, 1)
	c := w.dialled()
	l := w.listeners()
	l[0].disconnect(l[0].only(), false)
	w.run(aWhile)
	if len(w.force[w.listen.Group]) != 4 {
		t.Error("a listener that leaves is out at once")
	}
	w.run(time.Second)
	if len(w.force[w.listen.Group]) != 3 || c.state != "established" {
		t.Errorf("%d records, the dialler is %s", len(w.force[w.listen.Group]), c.state)
	}
	l[1].dies(true)
	w.evict(l[1])
	w.run(aWhile)
	if len(w.force[w.listen.Group]) != 2 || c.state != "established" {
		t.Errorf("%d records, the dialler is %s", len(w.force[w.listen.Group]), c.state)
	}
	l[2].disconnect(l[2].only(), true)
	w.run(2 * time.Second)
	if !slices.Contains(c.events, "disconnected") {
		t.Errorf("the dialler: %v", c.events)
	}
	w.run((leaveTries + 1) * time.Second)
	w.empty()
}
