// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/envelope/cm"
	"github.com/gleam-rdma/gleam/rocev2"
)

// CM.md: "a member that has left in the last 0.1 s before a kill -9 is one again until it is evicted for
// its silence". The default policy, strict, evicts nobody, and such a group has no lease: its members are
// served nothing again.
func TestLeftByDREQBeforeKill(t *testing.T) {
	t.Run("it has left", func(t *testing.T) { leftByDREQBeforeKill(t, true) })
	t.Run("it is there and answers", func(t *testing.T) { leftByDREQBeforeKill(t, false) }) // passes
}

func leftByDREQBeforeKill(t *testing.T, left bool) {
	dir, killed := t.TempDir(), t.TempDir()
	const config = "psn_probe: 1ms\nenvelope: {insecure: true}\n"
	f := newFakeSwitchWith(t, 3, 1, config+"state: "+dir+"\n")
	if err := f.CreateGroup(f.create(0, 3)); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		f.request(i, i, 0, rocev2.QPN(0x100+i))
	}
	f.eventually("the group is registered", func() bool { return len(f.members(0)) == 3 })
	var kept []cm.Kept
	var qpn rocev2.QPN
	records := map[netip.Addr]rocev2.PSN{} // that they send from
	f.control.do(func() {
		all := f.control.connections.manager.Connections(map[netip.Addr]bool{fakeGroup(0): true})
		kept = all[fakeGroup(0)]
		reg, _, _ := f.control.registrar.Group(fakeGroup(0))
		qpn = reg.QPN
		for _, m := range reg.Members {
			records[m.IP] = m.SQPSN
		}
	})
	disconnect := func(host int, a cm.Attribute) {
		for _, k := range kept {
			if k.Record.IP == fakeHost(host) {
				f.deliver(host, 0, &cm.Message{Attribute: a, TID: 1, LocalID: k.Peer, RemoteID: k.ID, DREQ: cm.DREQ{QPN: qpn}})
			}
		}
	}
	for i := range 3 {
		disconnect(i, cm.ReadyToUse)
	}
	f.eventually("all is in the file", func() bool { return !f.waits() })
	if err := copyFile(dir, killed); err != nil { // kill -9 comes now
		t.Fatal(err)
	}
	f.control.do(func() { // or as it is told that it has left
		f.left = nil
		f.onLeft = func(p *envelope.Packet) {
			var m cm.Message
			if left && cm.Decode(p.Data, &m) == cm.OK && m.Attribute == cm.DisconnectReply {
				if err := copyFile(dir, killed); err != nil {
					t.Error(err)
				}
				f.onLeft = nil
			}
		}
	})
	disconnect(2, cm.DisconnectRequest)
	f.eventually("it is told that it has left", func() bool { return len(f.sent(cm.DisconnectReply)) > 0 })
	f.end()

	f = newFakeSwitchWith(t, 3, 1, config+"state: "+killed+"\n")
	f.eventually("the group goes on", func() bool { return len(f.members(0)) == 3 })
	first := records[fakeHost(0)]
	source := send(0, first)
	for begin := time.Now(); time.Since(begin) < 25*time.Second; time.Sleep(20 * time.Millisecond) {
		f.feedTo(0, qpn, source)
		f.feedTo(0, qpn, answer(1, 0x776, rocev2.SyndromeACK)) // its answers to probes
		if !left {
			f.feedTo(0, qpn, answer(2, 0x776, rocev2.SyndromeACK))
		}
		if g, err := f.Group(fakeGroup(0)); err != nil || g.NextPSN == api.PSN(first.Next()) || len(g.Members) == 2 {
			f.end()
			return
		}
	}
	g, err := f.Group(fakeGroup(0))
	t.Errorf("25 s after the kill the member that has left is not evicted, and nobody is served: %d members, policy %s, state %s, source %v next %v (%v)", len(g.Members), g.Policy, g.State, g.Source, g.NextPSN, err)
	for _, m := range g.Members {
		t.Logf("%s: %s", m.IP, m.Diagnosis)
	}
	f.end()
}
