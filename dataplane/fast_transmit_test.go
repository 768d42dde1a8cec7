// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/lab"
)

// transmitted fails unless port comes to have sent and lost that many copies.
func (s *fastStream) transmitted(port int, want fastpath.Transmitted) {
	s.t.Helper()
	if err := s.x.maps.TransmitError(); err != nil {
		s.t.Fatal(err)
	}
	var is fastpath.Transmitted
	s.until("the port's copies are counted", func() bool {
		is = s.x.maps.Transmitted(port)
		return is.Sent+is.Lost >= want.Sent+want.Lost
	})
	if is != want {
		s.t.Fatalf("port %d transmitted %+v, want %+v", port, is, want)
	}
}

// What a driver takes is counted, also of several legs behind one port. A copy that a gate
// withheld is no loss.
func TestFastTransmitted(t *testing.T) {
	s := newFastStream(t, 16, 1, 1, 2)
	for i := range int32(4) {
		s.send(fastFirst.Add(i), 0, 1, 2)
	}
	s.g.Shut(1)
	for i := range int32(4) {
		s.send(fastFirst.Add(4+i), 0, 2)
	}
	s.transmitted(1, fastpath.Transmitted{Sent: 12})
	s.transmitted(2, fastpath.Transmitted{Sent: 8})
	s.transmitted(0, fastpath.Transmitted{})
}

// A far end that takes no redirected frames, of which the kernel still thinks that it does:
// the gate passes copies that nobody gets, and they are counted as lost.
func TestFastLost(t *testing.T) {
	s := newFastStream(t, 16, 1, 2)
	s.send(fastFirst, 0, 1)
	h := s.x.Hosts[2]
	link, err := h.NS.Handle().LinkByName(h.Interface)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{
		func() error { return h.NS.Handle().LinkSetDown(link) },
		func() error { return h.NS.SetFeature(h.Interface, lab.GRO, false) },
		func() error { return h.NS.Handle().LinkSetUp(link) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int32(5) {
		s.send(fastFirst.Add(1+i), 0)
	}
	s.gate(1, fastFirst.Add(6), 6, false)
	s.transmitted(1, fastpath.Transmitted{Sent: 6})
	s.transmitted(2, fastpath.Transmitted{Sent: 1, Lost: 5, Error: unix.ENXIO})
}
