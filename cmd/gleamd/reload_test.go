// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest/ownership"
)

// rewrite replaces the configuration file, which the user of gleamd can read.
func (p *process) rewrite(t *testing.T, text string) {
	t.Helper()
	for _, err := range []error{os.WriteFile(p.file, []byte(text), 0o600), os.Chmod(filepath.Dir(p.file), 0o755), os.Chmod(filepath.Dir(filepath.Dir(p.file)), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ownership.ForGleamd(t, p.file, nil)
}

// TestReloadOfPrefixes: a gleamd that has given up its privileges serves a prefix that a
// reload adds. It is removed by force alone while a group is in it; the refusal names the
// line of the file, and the group.
func TestReloadOfPrefixes(t *testing.T) {
	p := startProcess(t)
	text, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	list := "  - " + lab.StarGroupsIPv4.String() + "\n"
	with := strings.Replace(string(text), list, list+"  - 10.77.253.0/24\n", 1)
	group := netip.MustParseAddr("10.77.253.9")
	reload := func(text string, force bool, want string) {
		t.Helper()
		p.rewrite(t, text)
		x, err := p.client.Reload(t.Context(), api.Reload{Force: force})
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(x.Applied, x.NeedsRestart, x.GroupsEnded)
		}
		if !strings.Contains(got, want) {
			t.Fatalf("reload: %s, want %s\n%s", got, want, p.Output())
		}
	}
	reload(with, false, "[group_prefixes] [] []")
	reload(with, false, "[] [] []")
	if err := p.client.Register(t.Context(), &api.Register{
		Group: group, QPN: 0x4711, PMTU: 1024, Policy: "strict",
		Members: []api.RegisterMember{{IP: p.star.Hosts[0].IPv4, QPN: 0x11}, {IP: p.star.Hosts[1].IPv4, QPN: 0x12}},
	}); err != nil {
		t.Fatal(err)
	}
	line := strings.Count(with[:strings.Index(with, list)], "\n") + 1
	for range 2 {
		reload(string(text), false, fmt.Sprintf("%s:%d: group_prefixes: 1 groups are in none of these prefixes: %s: ", p.file, line, group))
	}
	if gs, err := p.client.Groups(t.Context()); err != nil || len(gs) != 1 {
		t.Errorf("groups %v, %v", gs, err)
	}
	reload(string(text), true, fmt.Sprintf("[group_prefixes] [] [%s]", group))
	if gs, err := p.client.Groups(t.Context()); err != nil || len(gs) != 0 {
		t.Errorf("groups %v, %v", gs, err)
	}
}
