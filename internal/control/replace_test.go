// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// What may take the place of a live group without being told to: an update of it,
// and by hand what is there by hand already.
func TestConflict(t *testing.T) {
	byHand := envelope.Registration{Group: netip.MustParseAddr("10.77.254.1"), Epoch: 7, GroupParams: mcast.GroupParams{QPN: 0x4711, PathMTU: 1024}}
	for i := range 6 {
		byHand.Members = append(byHand.Members, envelope.MemberRecord{
			IP: netip.AddrFrom4([4]byte{10, 77, 0, byte(i + 1)}), QPN: rocev2.QPN(0x11 + i), SQPSN: 1, RQPSN: 2,
		})
	}
	masters := byHand
	masters.Master = netip.MustParseAddrPort("10.77.0.1:4797")
	same := byHand
	same.Epoch = 0
	for _, c := range []struct {
		name   string
		old    envelope.Registration
		change func(*envelope.Registration)
		says   []string // nil: no conflict
	}{
		{"the same by hand", byHand, func(*envelope.Registration) {}, nil},
		{"an update", masters, func(r *envelope.Registration) { r.Base = 7 }, nil},
		{"a master's", masters, func(*envelope.Registration) {}, []string{"by its master at 10.77.0.1:4797", "epoch 7", "6 members", "10.77.0.4 qpn 0x14, …", "--replace"}},
		{"another path MTU", byHand, func(r *envelope.Registration) { r.PathMTU = 512 }, []string{"by hand", "--replace"}},
		{"another PSN", byHand, func(r *envelope.Registration) {
			r.Members = append([]envelope.MemberRecord(nil), r.Members...)
			r.Members[3].RQPSN++
		}, []string{"by hand"}},
		{"fewer members", byHand, func(r *envelope.Registration) { r.Members = r.Members[:5] }, []string{"by hand"}},
	} {
		reg := same
		c.change(&reg)
		err := replaceConflict(&c.old, &reg)
		if (err == nil) != (c.says == nil) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, s := range c.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %q does not say %q", c.name, err, s)
			}
		}
		if err != nil && strings.Contains(err.Error(), "10.77.0.5") {
			t.Errorf("%s: more members are named than fit a line: %v", c.name, err)
		}
	}
}
