// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Hosts are asked at once, and again while somebody waits; a port's share of envelopes
// bounds how many in a second.
func TestProofs(t *testing.T) {
	x := newLocationProofs()
	const ms = time.Millisecond
	h := &host{ip: fakeHost(0)}
	x.open(h, 1, ms)
	x.open(h, 1, 2*ms) // is asked already
	if at, ok := x.next(ms); !ok || at != ms {
		t.Errorf("the first question is due at %v, %v", at, ok)
	}
	var p *locationProof
	for i, want := range []time.Duration{1, 51, 201, 501, 801} {
		if got := x.nextDue(want*ms - 1); got != nil {
			t.Errorf("question %d comes before %d ms", i, want)
		}
		if p = x.nextDue(want * ms); p == nil || x.nextDue(want*ms) != nil {
			t.Fatalf("question %d: %v", i, p)
		}
		p.timesSent++
		x.schedule(p, want*ms)
	}
	x.open(h, 2, 900*ms)
	x.open(&host{ip: fakeHost(0)}, 1, 900*ms) // the first one was forgotten
	for key := range envelope.KeyID(2) {
		if q := x.by[proofKey{fakeHost(0), key + 1}]; q == p || (q.host == h) != (key == 1) {
			t.Errorf("key %d: %+v", key+1, q)
		}
	}
	for n := 0; ; n++ {
		q := x.nextDue(2000 * ms)
		if q == nil {
			if n != 2 {
				t.Errorf("%d questions, want those of the two keys", n)
			}
			break
		}
		x.remove(q)
	}
	if len(x.by) != 0 {
		t.Errorf("%d proofs are left", len(x.by))
	}
	for i := range 1000 {
		x.open(&host{ip: netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})}, 1, 3000*ms)
	}
	n := 0
	for x.nextDue(3000*ms) != nil {
		n++
	}
	if want := maxProofRate / 10; n < want-1 || n > want {
		t.Errorf("%d questions at once, want %d", n, want)
	}
	if at, ok := x.next(3000 * ms); !ok || at <= 3000*ms || at > 3002*ms {
		t.Errorf("the next one is due at %v, %v", at, ok)
	}
}

// enroll registers group n of the first hosts by an envelope of host 0.
func (f *fakeSwitch) enroll(n, members int, qpn api.QPN) {
	f.t.Helper()
	head := envelope.Header{Epoch: 1, Transaction: 1, Total: 1, Group: fakeGroup(n), ReplyTo: netip.AddrPortFrom(fakeHost(0), 4797)}
	body := envelope.GroupBody{GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024, Policy: mcast.Strict}, TotalMembers: members}
	for i := range members {
		m := f.record(i, qpn+api.QPN(i))
		body.Members = append(body.Members, record(&m))
	}
	message := &envelope.Message{Header: head, Body: &envelope.Register{GroupBody: body}}
	f.control.do(func() { // the answer to one without an instance has it
		var out envelope.Output
		b, err := envelope.Append(nil, message, nil, 0)
		if err != nil {
			f.t.Fatal(err)
		}
		f.control.registrar.Input(f.control.now(), head.ReplyTo, b, &out)
		m, err := envelope.Open(out.Packets[0].Data, nil, true)
		if err != nil {
			f.t.Fatal(err)
		}
		message.Instance, message.Epoch = m.Instance, m.Body.(*envelope.Challenge).EpochKnown+1
	})
	if !f.bring(0, message) {
		f.t.Fatal("no room for an envelope")
	}
}

// proving waits until a host is asked because of a registration, and returns where: ask 1 is
// where it was seen.
func (f *fakeSwitch) proving(host, ask int) (a locationRequest) {
	f.t.Helper()
	f.eventually("the host is asked", func() bool {
		f.control.do(func() {
			if p := f.control.dir.proofs.by[proofKey{fakeHost(host), 0}]; p != nil {
				a = p.requests[ask]
			}
		})
		return a.location.Ifindex != 0
	})
	return a
}

// proves has a host answer a question from a spot.
func (f *fakeSwitch) proves(group, host int, a locationRequest, by dataplane.Origin) {
	f.control.do(func() {
		f.control.handleHere(by, &envelope.Event{
			Group: fakeGroup(group), Member: envelope.MemberKey{IP: fakeHost(host)}, Nonce: a.nonce,
		})
		f.control.doDue()
	})
}

func (f *fakeSwitch) installed(group int) bool {
	f.t.Helper()
	_, err := f.Group(fakeGroup(group))
	return err == nil
}

// A group that is registered by envelope is there when each member has answered from the
// place that it was asked at. An answer from elsewhere counts after a question there. What
// is proved counts for the key's other groups.
func TestMembersProveTheirPlaces(t *testing.T) {
	f := suspectSwitch(t, 4)
	f.enroll(0, 3, 0x100)
	one, two := f.proving(1, 0), f.proving(2, 0)
	f.proves(0, 0, f.proving(0, 0), f.proving(0, 0).origin)
	f.proves(0, 1, one, dataplane.Origin{Port: one.origin.Port, MAC: rocev2.MAC{2, 9}, VLAN: 0}) // from another MAC address
	f.proves(0, 1, two, one.origin)                                                              // with another host's number
	f.proves(0, 1, locationRequest{}, one.origin)                                                // with none
	f.proves(0, 2, two, two.origin)
	if f.installed(0) {
		t.Fatal("the group is there, and a member has not answered from its place")
	}
	there := f.proving(1, 1)
	if there.origin != (dataplane.Origin{Port: one.origin.Port, MAC: rocev2.MAC{2, 9}, VLAN: 0}) {
		t.Errorf("the member was seen at %+v, and is asked at %+v", dataplane.Origin{Port: one.origin.Port, MAC: rocev2.MAC{2, 9}, VLAN: 0}, there.origin)
	}
	elsewhere := dataplane.Origin{Port: 3, MAC: one.origin.MAC, VLAN: 0}
	f.proves(0, 1, one, elsewhere)
	if there = f.proving(1, 1); there.origin != elsewhere {
		t.Errorf("the member was seen at %+v, and is asked at %+v", elsewhere, there.origin)
	}
	f.proves(0, 1, there, one.origin)
	if f.installed(0) {
		t.Fatal("the group is there, and a member was asked at one place, and has answered from another")
	}
	f.proves(0, 1, there, elsewhere)
	f.eventually("the group is there", func() bool { return f.installed(0) })
	if got := f.placeIn(0, 1); got != "f3 "+one.origin.MAC.String() {
		t.Errorf("the member is at %s", got)
	}
	c := f.control
	c.do(func() {
		if h := c.dir.hosts.byIP[fakeHost(1)]; h.pinned.Ifindex != 4 || h.location.Ifindex != 4 || c.moves.count.Stray != 5 {
			t.Errorf("pinned at interface %d, known at %d, %d answers from elsewhere", h.pinned.Ifindex, h.location.Ifindex, c.moves.count.Stray)
		}
	})

	f.enroll(1, 3, 0x200)
	f.eventually("another group of the same members is there", func() bool { return f.installed(1) })
	c.do(func() {
		reg := &envelope.Registration{Master: netip.AddrPortFrom(fakeHost(0), 1)}
		h := c.dir.hosts.byIP[fakeHost(2)]
		h.proven[0] = provenLocation{h.location, -time.Hour}
		if _, ok := c.dir.provenLocation(h, reg, 0); !ok {
			t.Error("what a member has proved is forgotten")
		}
		if _, ok := c.dir.provenLocation(h, reg, 1); ok {
			t.Error("what was proved under one key counts under another")
		}
		if _, ok := c.dir.provenLocation(h, &envelope.Registration{}, 1); !ok {
			t.Error("a group that is registered by hand waits for answers")
		}
		other := h.location
		other.Ifindex = 2
		h.proven[0] = provenLocation{other, -time.Hour}
		if at, ok := c.dir.provenLocation(h, reg, 0); ok || at.Ifindex != 3 {
			t.Error("a proof of long ago counts for another place")
		}
		guest := c.dir.hosts.guest(fakeHost(3), 9, c.now())
		guest.location, guest.proven[0] = other, provenLocation{other, -time.Hour}
		if _, ok := c.dir.provenLocation(guest, reg, 0); ok {
			t.Error("a proof of long ago counts for a guest")
		}
	})
}

// A registration whose member does not answer is rejected after locate_timeout: the log
// says where it was asked, and from where it has answered. What the kernel says meanwhile
// is followed. Nobody is asked any more then.
func TestAMemberProvesNothing(t *testing.T) {
	f := suspectSwitch(t, 3)
	f.control.do(func() { f.control.ports[0].Bridge = 7 }) // no way from the members' bridge
	f.enroll(0, 3, 0x100)
	for i := range 2 {
		f.proves(0, i, f.proving(i, 0), f.proving(i, 0).origin)
	}
	a := f.proving(2, 0)
	f.proves(0, 2, a, dataplane.Origin{Port: 0, MAC: a.origin.MAC})
	f.control.do(func() {
		if b := f.control.dir.proofs.by[proofKey{fakeHost(2), 0}].requests[1]; b.location.Ifindex != 0 {
			t.Errorf("asked behind port %d, where no route leads", b.location.Ifindex)
		}
	})
	f.locator.set(2, 3, 0x77, nil)
	var at locationRequest
	f.eventually("the kernel's word is followed", func() bool { at = f.proving(2, 0); return at.origin.MAC[5] == 0x77 })
	var es []api.Event
	f.eventually("the registration is rejected", func() bool { es = f.events(0, api.EventRejected); return len(es) > 0 })
	want := "the member has not confirmed its location: 10.77.0.3 qpn 0x102 (the switch's kernel has it at MAC address " + at.origin.MAC.String()
	end := "; inquiry at f2 " + at.origin.MAC.String() + ", answer: from f0 " + a.origin.MAC.String()
	if r := es[0].Reason; len(es) != 1 || !strings.HasPrefix(r, want) || !strings.HasSuffix(r, end) {
		t.Errorf("events %+v", es)
	}
	f.mu.Lock()
	if n := len(slices.DeleteFunc(slices.Clone(f.warnings), func(s string) bool { return !strings.HasPrefix(s, "a member has not confirmed that it is where") })); n != 1 {
		t.Errorf("%d warnings among %q", n, f.warnings)
	}
	f.mu.Unlock()
	f.eventually("nobody is asked any more", func() bool {
		n := 0
		f.control.do(func() { n = len(f.control.dir.proofs.by) })
		return n == 0
	})
	f.control.do(func() { f.control.dir.kernelDecides = true })
	f.enroll(1, 3, 0x200)
	f.eventually("where the kernel is followed nobody is asked", func() bool { return f.installed(1) })
}
