// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/rocev2"
)

// The cost of a stretch is what has been added in it; round trips are the later ones. A queue pair that is new, or
// whose counts have begun anew, has all that it counts in the stretch.
func TestCostsSince(t *testing.T) {
	ip := netip.MustParseAddr
	member := func(s string, qpn api.QPN, c *api.Cost) api.Member { return api.Member{IP: ip(s), QPN: qpn, Cost: c} }
	was := &api.Group{Members: []api.Member{
		member("10.0.0.1", 1, nil),
		member("10.0.0.2", 2, &api.Cost{NAKs: 3, RNRNAKs: 4, Repaired: 50, Probes: 6, RTTp50: 1, RTTp99: 2, Waited: 7}),
		member("10.0.0.3", 3, &api.Cost{NAKs: 5}),
		member("10.0.0.4", 4, &api.Cost{NAKs: 5, Waited: 2}),
		member("10.0.0.5", 5, &api.Cost{NAKs: 5}),
	}}
	now := &api.Group{Members: []api.Member{
		member("10.0.0.5", 5, nil),                                            // the present source
		member("10.0.0.4", 4, &api.Cost{NAKs: 6}),                             // counts begun anew: removed, and joined again
		member("10.0.0.3", 0x33, &api.Cost{NAKs: 9}),                          // another queue pair
		member("10.0.0.1", 1, &api.Cost{Repaired: 1000}),                      // the source before
		{IP: ip("10.0.0.6"), QPN: 6, Switch: "s", Cost: &api.Cost{Probes: 1}}, // a joiner
		member("10.0.0.2", 2, &api.Cost{NAKs: 13, RNRNAKs: 24, Repaired: 80, Probes: 46, RTTp50: 0.5, RTTp99: 0.75, Waited: 57.5}),
	}}
	want := []api.TraceCost{
		{Member: ip("10.0.0.4"), Cost: api.Cost{NAKs: 6}},
		{Member: ip("10.0.0.3"), Cost: api.Cost{NAKs: 9}},
		{Member: ip("10.0.0.1"), Cost: api.Cost{Repaired: 1000}},
		{Member: ip("10.0.0.6"), Switch: "s", Cost: api.Cost{Probes: 1}},
		{Member: ip("10.0.0.2"), Cost: api.Cost{NAKs: 10, RNRNAKs: 20, Repaired: 30, Probes: 40, RTTp50: 0.5, RTTp99: 0.75, Waited: 50.5}},
	}
	if got := costsSince(was, now); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := costsSince(nil, now); len(got) != len(want) || got[4].Cost != *now.Members[5].Cost {
		t.Errorf("without an earlier state: %+v", got)
	}
}

// The end of a trace has what members have cost the group while it ran, also if the group has ended by then, or was
// registered anew.
func TestTraceCosts(t *testing.T) {
	for _, c := range []struct {
		name   string
		during func(*fakeSwitch)
		want   []uint64 // NAKs of the receivers, in order
	}{
		{"nothing", func(*fakeSwitch) {}, []uint64{0, 0}},
		{"a NAK", func(f *fakeSwitch) { f.nak(2, 1) }, []uint64{0, 1}},
		{"its end", func(f *fakeSwitch) { f.nak(2, 1); f.Delete(fakeGroup(0)) }, []uint64{0, 1}},
		{"a new registration", func(f *fakeSwitch) {
			f.nak(2, 1)
			f.Delete(fakeGroup(0))
			f.register(0, 3, 0x100, "strict")
			f.feed(0, send(0, 0))
			f.nak(1, 0)
			f.nak(2, 0)
		}, []uint64{1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFakeSwitch(t, 3, 1)
			f.register(0, 3, 0x100, "strict")
			f.feed(0, send(0, 0))
			f.nak(1, 0)
			f.nak(2, 0)
			f.feed(0, send(0, 0), answer(1, 1000, rocev2.SyndromeACK), answer(2, 2000, rocev2.SyndromeACK), send(0, 1))
			run, err := f.Trace(&api.Trace{Group: fakeGroup(0)})
			if err != nil {
				t.Fatal(err)
			}
			c.during(f)
			if err := f.StopTrace(); err != nil {
				t.Fatal(err)
			}
			var end *api.TraceEnd
			if err := run(t.Context(), func(l *api.TraceLine, _ bool) error { end = l.End; return nil }); err != nil {
				t.Fatal(err)
			}
			var got []uint64
			for i := range end.Costs {
				got = append(got, end.Costs[i].Cost.NAKs)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("NAKs of the receivers: %v, want %v", got, c.want)
			}
		})
	}
}

// nak has host i say to the source that it lacks the packet with this number.
func (f *fakeSwitch) nak(i int, n rocev2.PSN) {
	f.feed(0, answer(i, rocev2.PSN(1000*i)+n, rocev2.SyndromeNAKSequence))
}
