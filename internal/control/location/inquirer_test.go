// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/internal/control/locate"
	"github.com/gleam-rdma/gleam/rocev2"
)

// A member's answer counts if it has the nonce of the spot that it comes from.
func TestInquiries(t *testing.T) {
	x := newInquiries(3)
	ip := testHost(1)
	at, home := dataplane.Origin{Port: 2, MAC: rocev2.MAC{2, 2}, VLAN: 7}, dataplane.Origin{Port: 0, MAC: rocev2.MAC{2, 1}, VLAN: 0}
	there, here := envelope.Nonce{1}, envelope.Nonce{2}
	q := &inquiry{ip: ip, newOrigin: at, oldOrigin: home, parts: []inquiryPart{{key: 3, nonce: there, nonceAtOld: here}}}
	if !x.mayStart(ip, 2) {
		t.Error("a host may not be asked")
	}
	x.start(q)
	if x.mayStart(ip, 2) || !x.mayStart(ip, 1) || !x.mayStart(testHost(2), 2) {
		t.Error("a host is asked once at each port")
	}
	other := func(change func(*dataplane.Origin)) dataplane.Origin { s := at; change(&s); return s }
	for _, c := range []struct {
		what  string
		ip    netip.Addr
		n     envelope.Nonce
		s     dataplane.Origin
		want  bool
		moved bool
	}{
		{"from there", ip, there, at, true, true},
		{"from its old place", ip, here, home, true, false},
		{"from its old place, tagged otherwise", ip, here, dataplane.Origin{Port: 0, MAC: rocev2.MAC{2, 1}, VLAN: 9}, true, false},
		{"of another host", testHost(2), there, at, false, false},
		{"with another nonce", ip, envelope.Nonce{3}, at, false, false},
		{"without a nonce", ip, envelope.Nonce{}, at, false, false},
		{"passed on, by the old port", ip, there, home, false, false},
		{"by a third port", ip, there, other(func(s *dataplane.Origin) { s.Port = 1 }), false, false},
		{"from another MAC address", ip, there, other(func(s *dataplane.Origin) { s.MAC[5] = 9 }), false, false},
		{"in another VLAN", ip, there, other(func(s *dataplane.Origin) { s.VLAN = 8 }), false, false},
		{"the old place's nonce, from there", ip, here, at, false, false},
	} {
		got, a, moved := x.answered(c.ip, c.n, c.s)
		if (got != nil) != c.want || moved != c.moved || c.want && a.key != 3 {
			t.Errorf("%s: %v, moved %v", c.what, got != nil, moved)
		}
	}
	var stages []int
	for now := time.Duration(0); now <= 2*time.Second; now += 10 * time.Millisecond {
		for q, stage := x.take(now); q != nil; q, stage = x.take(now) {
			stages = append(stages, stage)
			if at, ok := x.next(); ok && at <= now {
				t.Errorf("next is %v at %v", at, now)
			}
		}
	}
	if fmt.Sprint(stages) != "[0 1 2 3]" || !x.mayStart(ip, 2) {
		t.Errorf("stages %v; may be asked again: %v", stages, x.mayStart(ip, 2))
	}
	if _, _, moved := x.answered(ip, there, at); moved {
		t.Error("an answer counts after its time")
	}
	if _, ok := x.next(); ok || len(x.open) != 0 {
		t.Error("something is left")
	}
	for i := range maxInquiries {
		x.start(&inquiry{ip: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), newOrigin: dataplane.Origin{Port: 1}})
	}
	if x.mayStart(ip, 1) || !x.mayStart(ip, 2) {
		t.Error("a port's questions are not bounded, or those of another port are")
	}
}

// Hosts are asked at once, and again while somebody waits; a port's share of envelopes
// bounds how many in a second.
func TestProofs(t *testing.T) {
	x := newLocationProofs()
	const ms = time.Millisecond
	h := &Host{ip: testHost(0)}
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
	x.open(&Host{ip: testHost(0)}, 1, 900*ms) // the first one was forgotten
	for key := range envelope.KeyID(2) {
		if q := x.by[proofKey{testHost(0), key + 1}]; q == p || (q.host == h) != (key == 1) {
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
		x.open(&Host{ip: netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})}, 1, 3000*ms)
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

// An authentic request from elsewhere has its sender resolved anew, once in a second, unless it is a member.
func TestRequestFromANewMACAddress(t *testing.T) {
	x := NewHosts(testPorts{7}, nil)
	m := NewInquirer(x, config.MoveEvict, nil, Actions{Now: func() time.Duration { return time.Second }})
	h := x.Candidate(testHost(1), time.Second)
	at := locate.Location{Ifindex: 7, MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, Hop: testHost(1), Links: []int{7}}
	x.Answered(h, at, nil, time.Second)
	here := x.Origin(at)
	if m.RequestFrom(h, here); h.reresolve {
		t.Error("a request from where the kernel has the host is one from elsewhere")
	}
	other := here
	other.MAC[5]++
	if m.RequestFrom(h, other); !h.reresolve {
		t.Error("a request from another MAC address has no effect")
	}
	h.reresolve = false
	if m.RequestFrom(h, other); h.reresolve {
		t.Error("a second request at once has an effect")
	}
	x.Join(testGroup, 0, testHost(1), at)
	h.reresolvedAt = 0
	if m.RequestFrom(h, other); h.reresolve {
		t.Error("the entry of a member is given up")
	}
}

// A proof counts for its key: as long as the host is a member there, and for a while if it is none, or if the proof
// is of another place.
func TestProven(t *testing.T) {
	x := newTestHosts()
	at := locate.Location{Ifindex: 3, MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, Hop: testHost(2), Links: []int{3}}
	h, _ := x.Join(testGroup, 0, testHost(2), at)
	const now = 2 * time.Hour
	h.proven[0] = provenLocation{at, time.Hour}
	if _, ok := x.Proven(h, 0, false, now); !ok {
		t.Error("what a member has proved is forgotten")
	}
	if _, ok := x.Proven(h, 1, false, now); ok {
		t.Error("what was proved under one key counts under another")
	}
	if _, ok := x.Proven(h, 1, true, now); !ok {
		t.Error("a group that is registered by hand waits for answers")
	}
	other := at
	other.Ifindex = 2
	h.proven[0] = provenLocation{other, time.Hour}
	if at, ok := x.Proven(h, 0, false, now); ok || at.Ifindex != 3 {
		t.Error("a proof of long ago counts for another place")
	}
	guest := x.Candidate(testHost(3), now)
	guest.location, guest.proven[0] = other, provenLocation{other, time.Hour}
	if _, ok := x.Proven(guest, 0, false, now); ok {
		t.Error("a proof of long ago counts for a guest")
	}
}
