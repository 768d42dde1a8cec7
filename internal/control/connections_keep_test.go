// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope/cm"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
	"github.com/gleam-rdma/gleam/rocev2"
)

// restart ends f, and returns a switch with the same state file.
func (f *fakeSwitch) restart(hosts int, dir string) *fakeSwitch {
	f.t.Helper()
	f.end()
	return newFakeSwitchWith(f.t, hosts, 1, "state: "+dir+"\n")
}

// end ends f, and has its state stored.
func (f *fakeSwitch) end() {
	f.t.Helper()
	f.stop()
	f.control.keepLast()
	if err := f.control.keeper.Close(); err != nil {
		f.t.Fatal(err)
	}
}

// A group whose members have connected goes on after a restart with its connections: a member is
// replaced by another REQ of its address, and a DREQ takes one out. A group that waits for
// members has them connect.
func TestConnectedGroupAfterRestart(t *testing.T) {
	dir := t.TempDir()
	f := newFakeSwitchWith(t, 4, 1, "state: "+dir+"\n")
	for n, expect := range []int{3, 2} {
		if err := f.CreateGroup(f.create(n, expect)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		f.request(i, i, 0, rocev2.QPN(0x100+i))
	}
	f.request(3, 3, 1, 0x103)
	f.eventually("the group is registered", func() bool { return len(f.members(0)) == 3 })
	f.eventually("a member waits", func() bool {
		_, err := f.Group(fakeGroup(1))
		return err != nil && strings.Contains(err.Error(), "1 of 2 have")
	})
	var qpn rocev2.QPN
	var kept []cm.Kept
	f.control.do(func() {
		all := f.control.connections.manager.Connections(map[netip.Addr]bool{fakeGroup(0): true})
		kept = all[fakeGroup(0)]
		reg, _, _ := f.control.registrar.Group(fakeGroup(0))
		qpn = reg.QPN
	})
	f = f.restart(4, dir)
	f.eventually("the group is registered still", func() bool { return len(f.members(0)) == 3 })
	g, err := f.Group(fakeGroup(0))
	if err != nil || g.Origin != "rdma-cm" {
		t.Fatalf("%+v, %v", g, err)
	}
	var e *api.Error
	for n := range 2 {
		if err := f.CreateGroup(f.create(n, 3)); !errors.As(err, &e) || e.Reason != api.ReasonGroupExists {
			t.Errorf("group %d created again: %v", n, err)
		}
	}
	f.request(1, 1, 0, 0x201)
	f.eventually("a member has another queue pair", func() bool { return f.members(0)[fakeHost(1)] == 0x201 })
	for _, k := range kept {
		if k.Record.IP == fakeHost(2) {
			f.deliver(2, 0, &cm.Message{Attribute: cm.DisconnectRequest, TID: 9, LocalID: k.Peer, RemoteID: k.ID, DREQ: cm.DREQ{QPN: qpn}})
		}
	}
	f.eventually("a member has left", func() bool { return len(f.members(0)) == 2 })
	f.request(3, 3, 1, 0x103) // its kernel repeats the REQ
	f.request(2, 2, 1, 0x112)
	f.eventually("the other group is registered", func() bool { return len(f.members(1)) == 2 })
	if err := f.Delete(fakeGroup(1)); err != nil {
		t.Error(err)
	}
	f = f.restart(4, dir)
	f.eventually("the group is registered after two restarts", func() bool { return len(f.members(0)) == 2 })
	if err := f.CreateGroup(f.create(1, 3)); err != nil {
		t.Errorf("the address of a deleted group: %v", err)
	}
	f.end()
}

// A dialled session ends with a restart: an event has the number of its connections. The next
// program that dials gets one.
func TestDialledGroupAfterRestart(t *testing.T) {
	dir := t.TempDir()
	f := newFakeSwitchWith(t, 3, 1, "state: "+dir+"\n")
	g := &api.CreateGroup{
		Group: fakeGroup(0), Port: 7471, Policy: api.PolicyStrict, From: []netip.Prefix{netip.MustParsePrefix("10.77.0.1/32")}, WaitMS: 60_000,
		Listeners: []netip.AddrPort{netip.AddrPortFrom(fakeHost(1), 9), netip.AddrPortFrom(fakeHost(2), 9)}, Replies: api.RepliesLeader, Sessions: 1,
	}
	if err := f.CreateGroup(g); err != nil {
		t.Fatal(err)
	}
	f.request(0, 0, 0, 0x100)
	f.answerREQs(0, 2, 0x200)
	f.eventually("the group is registered", func() bool { return len(f.members(0)) == 3 })
	f = f.restart(3, dir)
	f.eventually("an event tells of the connections", func() bool {
		es := f.events(0, api.EventEnded)
		return len(es) == 1 && es[0].Reason == "gleamd has restarted, which ends 3 connections by RDMA-CM"
	})
	if m := f.members(0); m != nil {
		t.Errorf("members %v", m)
	}
	f.request(0, 0, 0, 0x101)
	f.answerREQs(0, 2, 0x300)
	f.eventually("the next session is registered", func() bool { return f.members(0)[fakeHost(0)] == 0x101 })
	f.end()
}

// sent returns the messages of an attribute that have left since the last one to the switch.
func (f *fakeSwitch) sent(of cm.Attribute) (all []cm.Message) {
	f.control.do(func() {
		for _, p := range f.left {
			var m cm.Message
			if cm.Decode(p.Data, &m) == cm.OK && m.Attribute == of {
				all = append(all, m)
			}
		}
	})
	return all
}

// No listener gets a REQ before the state file has the connection, and a dialler whose REP was sent
// is disconnected after kill -9 at once.
func TestDialledGroupIsKeptBeforeItsMessages(t *testing.T) {
	dir := t.TempDir()
	f := newFakeSwitchWith(t, 3, 1, "state: "+dir+"\n")
	g := &api.CreateGroup{
		Group: fakeGroup(0), Port: 7471, Policy: api.PolicyStrict, From: []netip.Prefix{netip.MustParsePrefix("10.77.0.1/32")}, WaitMS: 60_000,
		Listeners: []netip.AddrPort{netip.AddrPortFrom(fakeHost(1), 9), netip.AddrPortFrom(fakeHost(2), 9)}, Replies: api.RepliesLeader, Sessions: 1,
	}
	if err := f.CreateGroup(g); err != nil {
		t.Fatal(err)
	}
	f.eventually("the group is in the file", func() bool { return !f.waits() })
	f.control.do(func() { f.control.connections.unkept.last = f.control.now() + time.Hour })
	f.request(0, 0, 0, 0x100)
	f.eventually("the dialler waits", func() (holds bool) {
		f.control.do(func() {
			n, _ := f.control.departures.outbox.Size()
			holds = n > 0
		})
		return holds
	})
	if n := len(f.sent(cm.ConnectRequest)); n > 0 {
		t.Errorf("%d REQs were sent before the file has them", n)
	}
	f.control.do(func() { f.control.connections.unkept.last = 0 })
	f.answerREQs(0, 2, 0x200)
	f.eventually("the dialler is answered", func() bool { return len(f.sent(cm.ConnectReply)) == 1 })
	f.stop() // kill -9: what is not with the state file yet is lost
	if err := f.control.keeper.Close(); err != nil {
		t.Fatal(err)
	}
	f = newFakeSwitchWith(t, 3, 1, "state: "+dir+"\n")
	f.eventually("the dialler gets a DREQ", func() bool {
		for _, m := range f.sent(cm.DisconnectRequest) {
			if m.DREQ.QPN == 0x100 {
				return true
			}
		}
		return false
	})
	f.end()
}

// What cannot be restored is reported, and nobody may connect to it.
func TestCreationThatCannotBeRestored(t *testing.T) {
	dir := t.TempDir()
	f := newFakeSwitchWith(t, 3, 1, "state: "+dir+"\n")
	f.end()
	file, _, err := statefile.Open(filepath.Join(dir, "groups"), statefile.Options{Report: func(error) {}, Stored: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	var change statefile.Change
	change.SetCreated(fakeGroup(0), []byte(`{"Group":{"group":"10.77.254.1","port":7471,"expect":2,"policy":"strict","key":9}}`))
	change.SetCreated(fakeGroup(1), []byte(`{"Group":{"group":"10.77.254.1"}}`))
	change.SetCreated(fakeGroup(2), []byte(`{`))
	change.SetCreated(netip.MustParseAddr("10.78.0.1"), []byte(`{"Group":{"group":"10.78.0.1","port":7471,"expect":2,"policy":"strict","from":["10.0.0.0/8"]}}`))
	file.Append(&change)
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	f = newFakeSwitchWith(t, 3, 1, "state: "+dir+"\n")
	f.eventually("all are reported", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		text := strings.Join(f.warnings, "\n")
		for _, want := range []string{"key 9 is not configured", "of another group", "cannot be read", "10.78.0.1 is in no group prefix"} {
			if !strings.Contains(text, want) {
				return false
			}
		}
		return true
	})
	for n := range 3 {
		if err := f.CreateGroup(f.create(n, 3)); err != nil {
			t.Error(err)
		}
	}
	f.end()
}

// waits reports whether changes are not durable yet.
func (f *fakeSwitch) waits() (is bool) {
	f.control.do(func() { is = f.control.stats().State.Waiting })
	return is
}

// Changes of connections that are delayed are not durable.
func TestDelayedConnectionsAreWaiting(t *testing.T) {
	f := newFakeSwitchWith(t, 2, 1, "state: "+t.TempDir()+"\n")
	if err := f.CreateGroup(f.create(0, 2)); err != nil {
		t.Fatal(err)
	}
	f.control.do(func() { f.control.connections.unkept.last = f.control.now() + time.Hour })
	f.request(0, 0, 0, 0x100)
	f.eventually("a member waits, and all else is durable", func() bool {
		_, err := f.Group(fakeGroup(0))
		return strings.Contains(err.Error(), "1 of 2 have") && !f.control.keeper.Status().Waiting
	})
	if !f.waits() {
		t.Error("a connection that is not in the state file yet does not count as waiting")
	}
	f.control.do(func() { f.control.connections.unkept.last = 0 })
	f.eventually("the state file has the connection", func() bool { return !f.waits() })
}

// What an operator has been told of is in the state file: a switch that is killed at once begins with it.
func TestOperatorsChangesAreDurable(t *testing.T) {
	dir := t.TempDir()
	f := newFakeSwitchWith(t, 3, 1, "state: "+dir+"\n")
	kept := func(step string) *api.CreateGroup {
		t.Helper()
		copied := t.TempDir()
		b, err := os.ReadFile(filepath.Join(dir, "groups"))
		if err == nil {
			err = os.WriteFile(filepath.Join(copied, "groups"), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		file, found, err := statefile.Open(filepath.Join(copied, "groups"), statefile.Options{Owner: os.Getuid()})
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		defer file.Close()
		var k keptCreation
		if b, ok := found.State.Created[fakeGroup(0)]; ok {
			if err := json.Unmarshal(b, &k); err != nil {
				t.Fatalf("%s: %v", step, err)
			}
		}
		return k.Group
	}
	for _, mtu := range []int{1024, 4096} {
		g := f.create(0, 2)
		g.PMTU = mtu
		if err := f.CreateGroup(g); err != nil {
			t.Fatal(err)
		}
		if g := kept("created"); g == nil || g.PMTU != mtu {
			t.Errorf("%d created, the file has %+v", mtu, g)
		}
		if err := f.Delete(fakeGroup(0)); err != nil {
			t.Fatal(err)
		}
		if g := kept("deleted"); g != nil {
			t.Errorf("deleted, the file has %+v", g)
		}
	}
	f.end()
}
