// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"math"
	"net/netip"
	"testing"

	"github.com/gleam-rdma/gleam/envelope"
)

// A port whose requests' answers wait has no other request served; a renewal is.
func TestRequestsBeyondTheOutbox(t *testing.T) {
	f := newFakeSwitchWith(t, 2, 1, "psn_probe: 1ms\nenvelope: {insecure: true}\nstate: "+t.TempDir()+"\n")
	var refused uint64
	f.control.do(func() {
		o := &f.control.departures.outbox
		o.Note(fakeGroup(1), math.MaxUint64) // a change that the file never has
		for o.HasRoom(0) {
			o.Add(message{Group: fakeGroup(1), Promises: true})
		}
	})
	for i := range 2 {
		head := envelope.Header{Epoch: 1, Transaction: uint32(i + 1), Total: 1, Group: fakeGroup(0), ReplyTo: netip.AddrPortFrom(fakeHost(i), 4797)}
		f.bring(i, &envelope.Message{Header: head, Body: &envelope.Delete{}})
		f.bring(i, &envelope.Message{Header: head, Body: &envelope.Renew{}})
	}
	f.eventually("three of four are answered", func() bool {
		n := 0
		f.control.do(func() { n, refused = len(f.left), f.control.count.outboxFull })
		return n == 3 && refused == 1
	})
}
