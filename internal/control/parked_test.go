// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// A datagram for a host without a neighbour entry leaves once the entry is
// there, in order; what waits is bounded, in number and time.
func TestParking(t *testing.T) {
	var k parkedEnvelopes
	if _, ok := k.next(); ok {
		t.Error("nothing waits, but there is something to do")
	}
	for i := range maxParked {
		if !k.hasRoom(-1) {
			t.Errorf("there is no room for datagram %d", i)
		}
		k.add(0, &envelope.Packet{Data: []byte{byte(i)}}, -1)
	}
	if k.hasRoom(-1) || k.hasRoom(0) {
		t.Errorf("there is room for more than %d datagrams", maxParked)
	}
	if at, ok := k.next(); !ok || at != parkPollInterval {
		t.Errorf("next %v %v", at, ok)
	}
	var sent []byte
	resolved := func(p *envelope.Packet) bool { // the even ones
		if p.Data[0]%2 == 0 {
			sent = append(sent, p.Data[0])
		}
		return p.Data[0]%2 != 0
	}
	lost := 0
	k.retry(parkPollInterval-1, resolved, func() { lost++ })
	if len(sent) > 0 {
		t.Error("it looks before the time")
	}
	k.retry(parkPollInterval, resolved, func() { lost++ })
	if len(sent) != maxParked/2 || sent[0] != 0 || sent[1] != 2 || lost != 0 {
		t.Errorf("sent %v, lost %d", sent, lost)
	}
	if at, ok := k.next(); !ok || at != 2*parkPollInterval {
		t.Errorf("next %v %v", at, ok)
	}
	k.retry(parkTTL-1, resolved, func() { lost++ })
	if lost != 0 {
		t.Errorf("%d are given up too early", lost)
	}
	k.retry(parkTTL+time.Second, resolved, func() { lost++ })
	if _, ok := k.next(); ok || lost != maxParked/2 || len(sent) != maxParked/2 {
		t.Errorf("%d given up, %d sent, something to do: %v", lost, len(sent), ok)
	}
}

// The answers to one port's envelopes leave room for those to others'.
func TestParkingOfOnePort(t *testing.T) {
	var k parkedEnvelopes
	for port := range 2 {
		n := 0
		for ; k.hasRoom(port); n++ {
			k.add(0, &envelope.Packet{}, port)
		}
		if n != maxParkedPerPort {
			t.Errorf("%d answers to port %d may wait, want %d", n, port, maxParkedPerPort)
		}
	}
	if !k.hasRoom(-1) || !k.hasRoom(2) {
		t.Error("there is no room for other datagrams")
	}
}

// Requests in the names of very many addresses that the kernel does not resolve have it
// asked for as many of them as may wait, and a host at another port is asked for as ever.
func TestAnswersToNobodyAskLittle(t *testing.T) {
	const strangers, true1 = 100, 200
	f := newFakeSwitch(t, 3, 1)
	for i := range strangers {
		f.locator.set(10+i, 1, 0, locate.ErrPending)
	}
	f.locator.set(true1, 3, 9, nil)
	request := func(port, host int) {
		m := envelope.Message{Header: envelope.Header{
			Epoch: 1, Transaction: 1, Total: 1, Group: fakeGroup(0), ReplyTo: netip.AddrPortFrom(fakeHost(host), 4797),
		}, Body: &envelope.Leave{Member: envelope.MemberKey{IP: fakeHost(1), QPN: 0x999}}}
		f.eventually("a place for a request", func() bool { return f.bring(port, &m) })
	}
	for i := range strangers {
		request(0, 10+i)
	}
	request(1, true1)
	f.eventually("the true host is asked for", func() bool { return f.locator.questions(true1 + 1)[true1] > 0 })
	time.Sleep(parkTTL)
	n := 0
	for i, asked := range f.locator.questions(10 + strangers)[10:] {
		if asked > 0 {
			n++
		}
		if asked > 8 {
			t.Errorf("stranger %d is asked for %d times within a second", i, asked)
		}
	}
	if n == 0 || n > maxParkedPerPort {
		t.Errorf("%d of %d strangers' addresses are asked for, want %d at most", n, strangers, maxParkedPerPort)
	}
	f.control.do(func() { n = int(f.control.count.unsent) })
	if n < strangers-maxParkedPerPort {
		t.Errorf("no_location counts %d, want %d at least", n, strangers-maxParkedPerPort)
	}
}

// The datagrams of one iteration leave together, and none waits for the next one.
func TestDatagramsOfAnIterationLeaveTogether(t *testing.T) {
	f := newFakeSwitch(t, 2, 1)
	const n = maxDatagrams + 5
	f.control.do(func() {
		for i := range n {
			f.control.sendBy(dataplane.Origin{Port: i % 2}, &envelope.Packet{})
			if want := (i + 1) % maxDatagrams; len(f.control.departures.datagrams) != want {
				t.Errorf("%d of %d datagrams wait, want %d", len(f.control.departures.datagrams), i+1, want)
			}
		}
	})
	f.control.do(func() {
		if len(f.control.departures.datagrams) > 0 {
			t.Errorf("%d datagrams wait", len(f.control.departures.datagrams))
		}
		if s, err := f.plane.Stats(); err != nil || s.Drops["port_down"] != n { // the ports are down
			t.Errorf("the worker has had %d datagrams, %v", s.Drops["port_down"], err)
		}
	})
}
