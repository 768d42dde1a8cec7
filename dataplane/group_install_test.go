// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Groups that are installed together cost one closure for each worker. Those that their worker refuses, for want of
// packet memory or as its core does, are not served, and keep none of the others out.
func TestGroupsAreInstalledTogether(t *testing.T) {
	for _, workers := range []int{1, 2} {
		cfg := fakeConfig(t, 3, fmt.Sprintf("worker: {cpu: %v}\numem: {frames: 1024}\nlimits: {groups: 64, members_per_group: 600}\n", []string{"[-1]", "[-1, -1]"}[workers-1]), "")
		s := newFakeStar(t, lab.StarConfig{Hosts: 3}, cfg)
		p := &Plane{workers: s.workers, ports: s.ports}
		var all []Installation
		ip := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 254, byte(n + 1)}) }
		const groups, large, invalid = 40, 7, 12
		for n := range groups {
			members := 3
			if n == large {
				members = 600
			}
			x := Installation{
				Group: p.NewGroup(mcast.GroupID(n), ip(n)),
				Spec:  mcast.GroupSpec{ID: mcast.GroupID(n), IP: ip(n), GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024}},
				Table: Table{IP: ip(n), QPN: 0x4711, PMTU: 1024},
			}
			for i := range members {
				host := netip.AddrFrom4([4]byte{10, 77, byte(i >> 8), byte(i)})
				x.Spec.Legs = append(x.Spec.Legs, mcast.LegSpec{Port: mcast.Port(i % 3)})
				x.Spec.Members = append(x.Spec.Members, mcast.MemberSpec{MemberRecord: mcast.MemberRecord{IP: host, QPN: 0x100}, Leg: mcast.LegID(i)})
				x.Table.Destinations = append(x.Table.Destinations, Destination{Origin: Origin{Port: i % 3}, IP: host, QPN: 0x100})
			}
			if n == invalid {
				x.Spec.Members[2] = x.Spec.Members[1]
			}
			all = append(all, x)
		}
		if n := countClosures(s.all, func() { p.InstallGroups(all) }); n != workers {
			t.Errorf("%d workers: %d closures for %d groups", workers, n, groups)
		}
		for n := range all {
			x := &all[n]
			few, isFew := errors.AsType[*CapacityError](x.Err)
			_, owned := s.owners.of(rocev2.KeyOf(ip(n)))
			_, known := x.Group.worker.core.Lookup(ip(n))
			switch refused := n == large || n == invalid; {
			case refused != (x.Err != nil), isFew != (n == large):
				t.Errorf("%d workers: group %d: %v", workers, n, x.Err)
			case isFew && (few.Copies != 600 || few.Limit >= 600 || few.Limit < 3):
				t.Errorf("%d workers: %v", workers, x.Err)
			case owned == refused || known == refused:
				t.Errorf("%d workers: group %d has a worker: %v, is known to its core: %v", workers, n, owned, known)
			}
		}
		if load := p.GroupsPerWorker(); load[0] < (groups-2)/workers-1 {
			t.Errorf("%d workers have %v groups", workers, load)
		}
	}
}
