// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// accepts gives the switch a request of host 0, and returns whether an Accept of it leaves. gleamd is
// killed as it does: killed is the state file of that moment. before runs on the control loop.
func (f *fakeSwitch) accepts(head envelope.Header, body envelope.Body, dir, killed string, before func()) (accepted bool) {
	f.t.Helper()
	f.give(head, body, func() {
		before()
		f.onLeft = func(p *envelope.Packet) {
			m, err := envelope.Open(p.Data, nil, true)
			if accepted || err != nil || m.Type != envelope.TypeAccept || m.Transaction != head.Transaction || p.Dst != head.ReplyTo {
				return
			}
			accepted = true
			if err := copyFile(dir, killed); err != nil {
				f.t.Error(err)
			}
		}
	})
	f.eventually("an Accept leaves", func() (is bool) {
		f.control.do(func() { is = accepted })
		return is
	})
	return accepted
}

// give gives the switch a request of host 0. before runs on the control loop.
func (f *fakeSwitch) give(head envelope.Header, body envelope.Body, before func()) {
	f.t.Helper()
	b, err := envelope.Append(nil, &envelope.Message{Header: head, Body: body}, nil, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	f.control.do(func() {
		before()
		c := f.control
		c.dir.cameFrom = f.placeOf(head.ReplyTo.Addr())
		c.registrar.Input(c.now(), head.ReplyTo, b, &c.out)
		if c.out.Drop != envelope.NoDrop && c.out.Drop != envelope.Rejected {
			f.t.Errorf("drop %v: %s", c.out.Drop, c.out.Detail)
		}
		c.sendOutput()
	})
}

// placeOf returns where the switch has a host.
func (f *fakeSwitch) placeOf(ip netip.Addr) (s dataplane.Origin) {
	if h := f.control.dir.hosts.Of(ip); h != nil {
		s = f.control.dir.hosts.Origin(h.At())
	}
	return s
}

// copyFile copies the state file from one folder to another.
func copyFile(from, to string) error {
	b, err := os.ReadFile(filepath.Join(from, "groups"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "groups"), b, 0o600)
}

// keptMembers returns the members of group 0 in the state file of a folder.
func keptMembers(t *testing.T, dir string) []envelope.MemberRecord {
	t.Helper()
	file, found, err := statefile.Open(filepath.Join(dir, "groups"), statefile.Options{Owner: os.Getuid()})
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return found.State.Groups[fakeGroup(0)].Registration.Members
}

// challenge returns what the switch challenges host 0 with: its instance, and the newest epoch.
func (f *fakeSwitch) challenge(head envelope.Header, body envelope.Body) (instance, epoch uint64) {
	f.t.Helper()
	f.control.do(func() {
		var out envelope.Output
		b, _ := envelope.Append(nil, &envelope.Message{Header: head, Body: body}, nil, 0)
		f.control.dir.cameFrom = f.placeOf(head.ReplyTo.Addr())
		f.control.registrar.Input(f.control.now(), head.ReplyTo, b, &out)
		m, err := envelope.Open(out.Packets[0].Data, nil, true)
		if err != nil {
			f.t.Error(err)
			return
		}
		instance, epoch = m.Instance, m.Body.(*envelope.Challenge).EpochKnown
	})
	return instance, epoch
}

// written has the file have a change of another group, so that the next write begins a while later.
func (f *fakeSwitch) written(n int) {
	var change statefile.Change
	change.SetEpoch(netip.MustParseAddr("10.77.254.99"), uint64(n+1))
	f.control.keeper.Append(&change)
	if err := f.control.keeper.Flush(); err != nil {
		f.t.Error(err)
	}
}

// UPGRADING.md: "No completion comes before all live members have the bytes, before, during and after the
// restart." A master has got an Accept of an update that adds a member, gleamd is killed (kill -9) then,
// and starts again with what the file has. The source's next message must not be complete before the new
// member has it.
func TestAcceptedMemberAfterKill(t *testing.T) {
	const config = "psn_probe: 1ms\nenvelope: {insecure: true}\n"
	dir, killed := t.TempDir(), t.TempDir()
	f := newFakeSwitchWith(t, 4, 1, config+"state: "+dir+"\n")
	head := envelope.Header{Epoch: 1, Transaction: 1, Total: 1, Group: fakeGroup(0), ReplyTo: netip.AddrPortFrom(fakeHost(0), 4797)}
	body := envelope.GroupBody{GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024, Policy: mcast.Strict}, TotalMembers: 2, NoRepair: true, Lease: time.Minute}
	for i := range 2 {
		m := f.record(i, api.QPN(0x100+i))
		body.Members = append(body.Members, record(&m))
	}
	known := func() {
		f.control.dir.hosts.FollowKernel(true) // nobody is asked where it is
		f.know(4)
	}
	head.Instance, head.Epoch = f.challenge(head, &envelope.Register{GroupBody: body})
	head.Epoch++
	if !f.accepts(head, &envelope.Register{GroupBody: body}, dir, killed, known) {
		t.Fatal("the group is not accepted")
	}
	joiner, lacks := f.record(2, 0x102), false
	for try := 0; try < 20 && !lacks; try++ { // until gleamd is killed between the Accept and the next write, which begins within 0.5 ms
		joiner.QPN, joiner.SQPSN, joiner.RQPSN = api.QPN(0x102+try), api.PSN(0x10000*(try+1)), api.PSN(0x10000*(try+1))
		if try > 0 { // the last one was in the file already
			body.Base, body.Members, body.TotalMembers = head.Epoch, body.Members[:2:2], 2
			head.Epoch, head.Transaction = head.Epoch+1, head.Transaction+1
			f.accepts(head, &envelope.Register{GroupBody: body}, dir, killed, known)
		}
		body.Base, body.Members, body.TotalMembers = head.Epoch, append(body.Members[:2:2], record(&joiner)), 3
		head.Epoch, head.Transaction = head.Epoch+1, head.Transaction+1
		if !f.accepts(head, &envelope.Register{GroupBody: body}, dir, killed, func() { known(); f.written(try) }) {
			t.Fatal("the update is not accepted")
		}
		key := record(&joiner)
		lacks = !slices.ContainsFunc(keptMembers(t, killed), func(m envelope.MemberRecord) bool { return m.Key() == key.Key() })
	}
	t.Logf("the master has an Accept of member %s qpn %v; the file lacks it: %v", joiner.IP, joiner.QPN, lacks)
	f.end()

	f = newFakeSwitchWith(t, 4, 1, config+"state: "+killed+"\n")
	f.control.do(func() { f.control.dir.hosts.FollowKernel(true); f.know(4) })
	time.Sleep(50 * time.Millisecond)
	if m := f.members(0); m[joiner.IP] != joiner.QPN {
		t.Errorf("the master has an Accept of 3 members; after the kill the switch serves %d: %v", len(m), m)
	}
	f.eventually("the source is served", func() bool {
		f.feed(0, answer(1, 999, rocev2.SyndromeACK), answer(2, rocev2.PSN(joiner.RQPSN).Prev(), rocev2.SyndromeACK)) // their answers to keepalive probes
		f.feed(0, send(0, 0))
		g, err := f.Group(fakeGroup(0))
		return err == nil && g.Source == fakeHost(0) && g.NextPSN == 1
	})
	f.feed(0, answer(1, 1000, rocev2.SyndromeACK))
	if g, err := f.Group(fakeGroup(0)); err != nil || g.AckPSN == 0 {
		t.Errorf("FALSE COMPLETION: PSN 0 is acknowledged to the source, and member %s, which was accepted, was sent nothing (%v)", joiner.IP, err)
	}
	f.end()
}

// A member has left, and has an Accept of that; gleamd is killed then, and starts again with what the file
// has. The others' transfer can finish, so it does.
func TestMemberLeftBeforeKill(t *testing.T) {
	const config = "psn_probe: 1ms\nenvelope: {insecure: true}\n"
	dir, killed := t.TempDir(), t.TempDir()
	f := newFakeSwitchWith(t, 4, 1, config+"state: "+dir+"\n")
	head := envelope.Header{Epoch: 1, Transaction: 1, Total: 1, Group: fakeGroup(0), ReplyTo: netip.AddrPortFrom(fakeHost(0), 4797)}
	body := envelope.GroupBody{GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024, Policy: mcast.Strict}, TotalMembers: 3, NoRepair: true, Lease: time.Minute}
	for i := range 3 {
		m := f.record(i, api.QPN(0x100+i))
		body.Members = append(body.Members, record(&m))
	}
	known := func() {
		f.control.dir.hosts.FollowKernel(true)
		f.know(4)
	}
	head.Instance, head.Epoch = f.challenge(head, &envelope.Register{GroupBody: body})
	lacks := false
	for try := 0; try < 20 && !lacks; try++ {
		head.Epoch, head.Transaction = head.Epoch+1, head.Transaction+1
		body.Members[2].QPN, body.Members[2].SQPSN, body.Members[2].RQPSN = rocev2.QPN(0x102+try), rocev2.PSN(0x10000*(try+1)), rocev2.PSN(0x10000*(try+1))
		if body.Base = head.Epoch - 1; try == 0 {
			body.Base = 0
		}
		if !f.accepts(head, &envelope.Register{GroupBody: body}, dir, killed, known) {
			t.Fatal("the group is not accepted")
		}
		leaving := head
		leaving.Transaction += 1000
		if !f.accepts(leaving, &envelope.Leave{Member: body.Members[2].Key()}, dir, killed, func() { f.written(try) }) {
			t.Fatal("the Leave is not accepted")
		}
		lacks = len(keptMembers(t, killed)) == 3
	}
	f.end()
	f = newFakeSwitchWith(t, 4, 1, config+"state: "+killed+"\n")
	f.control.do(func() { f.control.dir.hosts.FollowKernel(true); f.know(4) })
	time.Sleep(50 * time.Millisecond)
	for begin := time.Now(); time.Since(begin) < 10*time.Second; time.Sleep(20 * time.Millisecond) {
		f.feed(0, answer(1, 999, rocev2.SyndromeACK), send(0, 0)) // its answer to a keepalive probe
		if g, err := f.Group(fakeGroup(0)); err != nil || g.NextPSN == 1 {
			f.end()
			return
		}
	}
	g, err := f.Group(fakeGroup(0))
	t.Errorf("member %s has left and was told so; after the kill the source's first packet was repeated for 10 s, and no receiver was sent it (%v): %s; %d members, the last one's state: %s", fakeHost(2), err, g.State, len(g.Members), g.Members[len(g.Members)-1].Diagnosis)
	f.end()
}
