// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
)

// A datagram for a host without a neighbour entry leaves once the entry is
// there, in order; what waits is bounded, in number and time.
func TestParking(t *testing.T) {
	var k parking
	if _, ok := k.next(); ok {
		t.Error("nothing waits, but there is something to do")
	}
	for i := range parkRoom + 2 {
		if ok := k.add(0, &envelope.Packet{Data: []byte{byte(i)}}); ok != (i < parkRoom) {
			t.Errorf("datagram %d was taken: %v", i, ok)
		}
	}
	if at, ok := k.next(); !ok || at != parkPoll {
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
	k.retry(parkPoll-1, resolved, func() { lost++ })
	if len(sent) > 0 {
		t.Error("it looks before the time")
	}
	k.retry(parkPoll, resolved, func() { lost++ })
	if len(sent) != parkRoom/2 || sent[0] != 0 || sent[1] != 2 || lost != 0 {
		t.Errorf("sent %v, lost %d", sent, lost)
	}
	if at, ok := k.next(); !ok || at != 2*parkPoll {
		t.Errorf("next %v %v", at, ok)
	}
	k.retry(parkTime-1, resolved, func() { lost++ })
	if lost != 0 {
		t.Errorf("%d are given up too early", lost)
	}
	k.retry(parkTime+time.Second, resolved, func() { lost++ })
	if _, ok := k.next(); ok || lost != parkRoom/2 || len(sent) != parkRoom/2 {
		t.Errorf("%d given up, %d sent, something to do: %v", lost, len(sent), ok)
	}
}
