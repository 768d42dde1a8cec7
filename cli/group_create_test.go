// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/api/apitest"
)

// What the flags of group create say reaches the daemon.
func TestGroupCreate(t *testing.T) {
	b := apitest.Switch()
	socket := serve(t, b)
	line := "group create --group 10.77.254.9 --port 7471 --expect 0x10 --from 10.77.0.9/24 --from 10.78.0.1 --key 7 --wait 1500ms --pmtu 2048 --policy evict --dead-after 200ms --repair off --window va=0x1000,len=64,rkey=5"
	if _, stderr, code := run(t, socket, strings.Fields(line)...); code != 0 {
		t.Fatal(stderr)
	}
	want := api.CreateGroup{
		Group: netip.MustParseAddr("10.77.254.9"), Port: 7471, Expect: 16, PMTU: 2048, Policy: api.PolicyEvict, DeadAfterMS: 200, Window: &api.Window{VA: 0x1000, Len: 64, RKey: 5},
		NoRepair: true, Key: 7, From: []netip.Prefix{netip.MustParsePrefix("10.77.0.0/24"), netip.MustParsePrefix("10.78.0.1/32")}, WaitMS: 1500,
	}
	if got := b.Created(); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("created\n got %+v\nwant %+v", got, want)
	}
}
