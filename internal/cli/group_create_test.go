// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/test/apitest"
)

// What the flags of group create say reaches the daemon.
func TestGroupCreate(t *testing.T) {
	b := apitest.Switch()
	socket := serve(t, b)
	line := "group create --group 10.77.254.9 --port 7471 --expect 0x10 --from 10.77.0.9/24 --from 10.78.0.1 --key-id 7 --wait 1500ms --pmtu 2048 --policy evict --dead-after 200ms --repair off --window va=0x1000,len=64,rkey=5"
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

// Members that listen have a port of their own, or that of --listen.
func TestGroupCreateListeners(t *testing.T) {
	b := apitest.Switch()
	socket := serve(t, b)
	line := "group create --group fd77:fe::9 --port 7471 --from fd77::1 --listen 99 --member fd77::2 --member [fd77::3]:100 --replies leader --sessions 2 --strip"
	if _, stderr, code := run(t, socket, strings.Fields(line)...); code != 0 || !strings.Contains(stderr, "waits for a program at port 7471, and connects it with 2 members") {
		t.Fatal(stderr)
	}
	want := api.CreateGroup{
		Group: netip.MustParseAddr("fd77:fe::9"), Port: 7471, Policy: api.PolicyStrict, From: []netip.Prefix{netip.MustParsePrefix("fd77::1/128")}, WaitMS: api.DefaultWaitMS,
		Listeners: []netip.AddrPort{netip.MustParseAddrPort("[fd77::2]:99"), netip.MustParseAddrPort("[fd77::3]:100")}, Replies: api.RepliesLeader, Sessions: 2, Strip: true,
	}
	if got := b.Created(); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("created\n got %+v\nwant %+v", got, want)
	}
	const group = "group create --group 10.77.254.9 --port 7471 --from 10.77.0.1 "
	for line, want := range map[string]string{
		group:                        "--expect and --member are missing",
		group + "--expect 3 --key 7": "name the key of the members' private data by --key-id",
		group + "--expect 3 --member 10.77.0.2:9":                    "--expect: 3 is given",
		group + "--member 10.77.0.2":                                 "--member: 10.77.0.2 has no port",
		group + "--listen 9 --member 10.77.0.2 --member 10.77.0.2:8": "--member: 10.77.0.2 is named twice",
		group + "--listen 9 --member fd77::2":                        "--member: [fd77::2]:9 is no address of the group's family",
		group + "--listen 9 --member 10.77.254.9":                    "--member: 10.77.254.9 is the group's own address",
		group + "--listen 9 --member host":                           "--member: \"host\" is neither an address",
		group + "--listen x --member 10.77.0.2":                      "--listen:",
		group + "--listen 9 --member 10.77.0.2 --replies all":        "--replies: \"all\" is none of refuse, leader, source",
		group + "--listen 9 --member 10.77.0.2 --sessions 17":        "--sessions: 17 is not in 1 to 16",
		group + "--listen 9 --member 10.77.0.2 --policy quorum:2":    "--policy:",
		group + "--expect 3 --replies leader":                        "--member: missing",
	} {
		if _, stderr, code := run(t, socket, strings.Fields(line)...); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d, %s; want %s", line, code, stderr, want)
		}
	}
}
