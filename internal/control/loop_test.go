// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// envelopeFrame is a frame with an envelope of a host behind a port.
func (f *fakeSwitch) envelopeFrame(port int, m *envelope.Message) dataplane.Frame {
	f.t.Helper()
	b, err := envelope.Append(nil, m, nil, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	path := rocev2.Path{Src: m.ReplyTo.Addr(), Dst: m.Group, SrcPort: m.ReplyTo.Port()}
	copy(path.SrcMAC[:], f.locator.place(m.ReplyTo.Addr()).MAC) // the zero address of a host that is nowhere
	frame := make([]byte, 128+len(b))
	return dataplane.Frame{Port: port, Bytes: frame[:rocev2.BuildUDP(frame, &path, m.ReplyTo.Port(), b)]}
}

// bring delivers an envelope of a host behind a port; false if there is no slot for it.
func (f *fakeSwitch) bring(port int, m *envelope.Message) bool {
	f.t.Helper()
	full := func() uint64 {
		s, err := f.plane.Stats()
		if err != nil {
			f.t.Fatal(err)
		}
		return s.Drops["slow_path_full"]
	}
	before := full()
	if err := f.plane.Deliver(f.envelopeFrame(port, m)); err != nil {
		f.t.Fatal(err)
	}
	return full() == before
}

// A lease whose renewals come does not end, though the control loop was held up for
// longer than the lease, the renewal came after that, and requests in any number wait
// before it.
func TestRenewalsComeFirst(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	f.control.do(func() { f.control.dir.hosts.FollowKernel(true) }) // nobody is asked
	head := envelope.Header{
		Epoch: 1, Transaction: 1, Total: 1, Group: fakeGroup(0), ReplyTo: netip.AddrPortFrom(fakeHost(0), 4797),
	}
	body := envelope.GroupBody{GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024, Policy: mcast.Strict}, TotalMembers: 3, Lease: time.Second}
	for i := range 3 {
		m := f.record(i, api.QPN(0x100+i))
		body.Members = append(body.Members, record(&m))
	}
	f.control.do(func() { // the answer to one without an instance has it
		var out envelope.Output
		b, _ := envelope.Append(nil, &envelope.Message{Header: head, Body: &envelope.Register{GroupBody: body}}, nil, 0)
		f.control.registrar.Input(f.control.now(), head.ReplyTo, b, &out)
		m, err := envelope.Open(out.Packets[0].Data, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		head.Instance, head.Epoch = m.Instance, m.Body.(*envelope.Challenge).EpochKnown+1
	})
	f.bring(0, &envelope.Message{Header: head, Body: &envelope.Register{GroupBody: body}})
	f.eventually("the group is registered", func() bool { g, err := f.Group(fakeGroup(0)); return err == nil && g.LeaseLeft > 0 })
	renewal := envelope.Message{Header: head, Body: &envelope.Renew{Lease: time.Second}}
	machine := labtest.Watch()
	for range 3 {
		renewal.Transaction++
		junk := envelope.Message{Header: head, Body: &envelope.Leave{Member: envelope.MemberKey{IP: fakeHost(1), QPN: 0x999}}}
		brought := make(chan time.Duration, 1) // how long after the requests the renewal is there
		f.control.do(func() {
			time.Sleep(1200 * time.Millisecond) // the lease is over
			for port := range 3 {
				for f.bring(port, &junk) {
				}
			}
			begin := time.Now()
			time.AfterFunc(leaseGrace/4, func() {
				if !f.bring(0, &renewal) {
					t.Error("requests take the room of renewals")
				}
				brought <- time.Since(begin)
			})
		})
		if d := <-brought; d > leaseGrace {
			machine.Timing(t, "the renewal came %v after the pause, and leases are held for %v", d, leaseGrace)
		}
		f.eventually("the lease is renewed", func() bool {
			g, err := f.Group(fakeGroup(0))
			if err != nil {
				t.Fatalf("the lease has ended: %v, %+v", err, f.events(0, api.EventEnded))
			}
			return g.LeaseLeft > 0
		})
	}
	s, err := f.stats()
	if err != nil || s.LongestIteration < 1.2 || s.LongestIteration > 10 || s.Iterations == 0 || s.Lookups < 4 {
		t.Errorf("the control loop's numbers: %+v, %v", s, err)
	}
	f.eventually("the lease ends", func() bool { return len(f.events(0, api.EventEnded)) == 1 })
}

func (f *fakeSwitch) stats() (s api.Control, err error) {
	if !f.control.do(func() { s = f.control.stats() }) {
		err = errStopped
	}
	return s, err
}

// Requests in any number have the control loop turn at a rate of its own, and each is
// served within some milliseconds.
func TestRequestsShareTurns(t *testing.T) {
	f := newFakeSwitch(t, 3, 1)
	turns := func() (n uint64) {
		f.control.do(func() { n = f.control.loop.iterations })
		return n
	}
	junk := envelope.Message{Header: envelope.Header{
		Epoch: 1, Transaction: 1, Total: 1, Group: fakeGroup(0), ReplyTo: netip.AddrPortFrom(fakeHost(0), 4797),
	}, Body: &envelope.Leave{Member: envelope.MemberKey{IP: fakeHost(1), QPN: 0x999}}}
	frames := slices.Repeat([]dataplane.Frame{f.envelopeFrame(0, &junk)}, 16) // a busy machine delivers seldom
	begin, before, n := time.Now(), turns(), 0
	for time.Since(begin) < 500*time.Millisecond {
		if err := f.plane.Deliver(frames...); err != nil {
			t.Fatal(err)
		}
		n += len(frames)
		time.Sleep(100 * time.Microsecond)
	}
	got := turns() - before
	const gap = time.Second / requestIterations
	if most := uint64((time.Since(begin) + dataplane.BurstTime) / gap); n < 300 || got > most+20 {
		t.Errorf("%d requests in %v took %d turns, want at most %d", n, time.Since(begin), got, most)
	}
	f.eventually("all are served", func() bool { return len(f.plane.Requests()) == 0 })
	begin = time.Now()
	f.bring(0, &junk)
	f.eventually("one more is served", func() bool { return len(f.plane.Requests()) == 0 })
	if d := time.Since(begin); d > time.Second {
		t.Errorf("it took %v", d)
	}
}
