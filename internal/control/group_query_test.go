// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"net/netip"
	"testing"

	"github.com/gleam-rdma/gleam/api"
)

// Pages of groups have each group once, in the order of addresses, and what a query selects.
func TestGroupsByPages(t *testing.T) {
	const groups = 2*showBatch + 3
	f := newFakeSwitch(t, 4, 1)
	for i := range groups {
		f.register(i, 2+i%2, api.QPN(0x100+0x10*i), "strict")
	}
	all, err := f.Groups(nil)
	if err != nil || len(all) != groups {
		t.Fatalf("%d groups, %v", len(all), err)
	}
	for _, limit := range []int{1, 7, showBatch, groups, groups + 1} {
		var got []netip.Addr
		for q := (api.GroupQuery{Limit: limit}); ; q.After = got[len(got)-1] {
			page, err := f.Groups(&q)
			if err != nil || len(page) > limit {
				t.Fatalf("limit %d: %d groups, %v", limit, len(page), err)
			}
			for i := range page {
				got = append(got, page[i].IP)
			}
			if len(page) < limit {
				break
			}
		}
		for i, ip := range got {
			if len(got) != groups || ip != all[i].IP {
				t.Fatalf("limit %d: %v", limit, got)
			}
		}
	}
	third := fakeHost(2)
	list, err := f.Groups(&api.GroupQuery{Member: third, Limit: 5})
	if err != nil || len(list) != 5 || list[4].IP != fakeGroup(9) {
		t.Errorf("the first five of %s: %v, %v", third, list, err)
	}
	if list, err = f.Groups(&api.GroupQuery{State: "failed"}); err != nil || len(list) != 0 {
		t.Errorf("failed groups: %v, %v", list, err)
	}
}
