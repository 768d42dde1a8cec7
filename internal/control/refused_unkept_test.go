// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// What is refused changes nothing that is in the state file: it costs no write, and while the file cannot be
// written no memory, however many addresses a stranger's REQs, or a key holder's registrations, name.
func TestRefusalsAreNotKept(t *testing.T) {
	f := newFakeSwitchWith(t, 4, 1, "psn_probe: 1ms\nenvelope: {insecure: true}\nstate: "+t.TempDir()+"\n")
	asked := f.create(0, 3)
	asked.From = []netip.Prefix{netip.PrefixFrom(fakeHost(0), 32), netip.PrefixFrom(fakeHost(1), 32)}
	if err := f.CreateGroup(asked); err != nil {
		t.Fatal(err)
	}
	f.request(0, 0, 0, 0x100)
	f.eventually("a member's connection is in the file", func() bool {
		is := false
		f.control.do(func() { is = f.control.connections.manager.IsConnected(fakeHost(0)) })
		return is && !f.waits()
	})
	writes := f.control.keeper.Status().Writes

	noted := 0
	look := func() {
		f.control.do(func() {
			_, changes := f.control.departures.outbox.Size()
			noted += len(f.control.connections.unkept.groups) + changes
		})
	}
	for i := range 20 { // of a host that the group is not open for, and to addresses without a group
		f.request(3, 3, 0, rocev2.QPN(0x200+i))
		f.request(3, 3, 10+i, rocev2.QPN(0x300+i))
		time.Sleep(5 * time.Millisecond)
		look()
	}
	for i := range 20 { // with a path MTU that no port has
		head := envelope.Header{Epoch: 1, Transaction: 1, Total: 1, Group: fakeGroup(40 + i), ReplyTo: netip.AddrPortFrom(fakeHost(0), 4797)}
		body := envelope.GroupBody{GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 4096, Policy: mcast.Strict}, TotalMembers: 2, NoRepair: true, Lease: time.Minute}
		for m := range 2 {
			r := f.record(m, api.QPN(0x500+16*i+m))
			body.Members = append(body.Members, record(&r))
		}
		head.Instance, head.Epoch = f.challenge(head, &envelope.Register{GroupBody: body})
		head.Epoch++
		f.give(head, &envelope.Register{GroupBody: body}, func() { f.control.dir.hosts.FollowKernel(true); f.know(4) })
		f.answered("the registration", 1, envelope.TypeReject)
		f.control.do(func() { f.left = nil })
		look()
	}
	if n := f.control.keeper.Status().Writes - writes; n > 0 || noted > 0 {
		t.Errorf("what was refused has been written %d times, and was noted %d times", n, noted)
	}
	f.end()
}
