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
	"github.com/gleam-rdma/gleam/internal/control/store"
	"github.com/gleam-rdma/gleam/mcast"
)

// A member is evicted while the state file cannot be written, which lasts for longer than the registrar repeats a
// Gone, and than other messages wait. Master, member, neighbours and connections hear of it all the same.
func TestEvictionIsToldAfterALongFailure(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	head := envelope.Header{Epoch: 1, Transaction: 1, Total: 1, Group: fakeGroup(0), ReplyTo: netip.AddrPortFrom(fakeHost(0), 4797)}
	body := envelope.GroupBody{GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024, Policy: mcast.Evict}, TotalMembers: 3, NoRepair: true, Lease: time.Minute}
	for i := range 3 {
		m := f.record(i, api.QPN(0x100+i))
		body.Members = append(body.Members, record(&m))
	}
	head.Instance, head.Epoch = f.challenge(head, &envelope.Register{GroupBody: body})
	head.Epoch++
	f.give(head, &envelope.Register{GroupBody: body}, func() { f.control.dir.hosts.FollowKernel(true); f.know(3) })
	f.answered("the registration", 1, envelope.TypeAccept)
	f.control.do(func() {
		c := f.control
		c.emptyOutbox()
		c.dir.RemoveMember(fakeGroup(0), body.Members[2].Key(), envelope.Evicted)
		c.registrar.MemberEvicted(c.now(), fakeGroup(0), body.Members[2].Key(), envelope.Elsewhere, 0, &c.out)
		c.out.Relays = append(c.out.Relays, envelope.Relay{Group: fakeGroup(0), Promises: true, Lasts: true}, envelope.Relay{Group: fakeGroup(0), Promises: true})
		c.sendOutput()
		c.connections.out = cm.Output{Packets: []cm.Packet{{From: fakeGroup(0), To: fakeHost(2), Promises: true, Lasts: true}, {From: fakeGroup(0), To: fakeHost(2), Promises: true}}}
		c.sendConnections()
		c.connections.out = cm.Output{}
		o := &c.departures.outbox
		o.Note(fakeGroup(0), 5)
		o.Release(4, true, func(netip.Addr) bool { return false }, func(m *message) { t.Errorf("left: %+v", m) })
		waited, _ := o.Size()
		if expired := o.Expire(c.now() + time.Hour); waited != 6 || expired != 2 {
			t.Errorf("%d messages wait, %d of them expire; want the Gones to master and member, one of two relays and of two MADs to remain", waited, expired)
		}
		*o = store.NewOutbox[content]() // what is made up here goes to nobody
	})
}
