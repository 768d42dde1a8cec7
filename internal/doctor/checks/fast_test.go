// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/iface"
)

// What is said of kernel, memory and ports by gleamd --check.
func TestCheckFastPath(t *testing.T) {
	type change struct {
		host *fastHost
		cfg  *config.Config
		mtu  *int
	}
	for _, tc := range []struct {
		name   string
		change func(change)
		want   []string
		fatal  bool
	}{
		{"all is well", func(change) {}, nil, false},
		{"an old kernel", func(c change) { c.host.release, c.host.btf = "5.17.9-foo", false }, []string{"the fast path needs Linux 5.18, and this is 5.17.9-foo"}, false},
		{"an old kernel, required", func(c change) { c.host.release, c.cfg.FastPath = "4.19.0", config.FastPathRequire }, []string{"the fast path needs Linux 5.18"}, true},
		{"the first kernel", func(c change) { c.host.release = "5.18.0" }, nil, false},
		{"a newer kernel", func(c change) { c.host.release = "7.0" }, nil, false},
		{"no BTF", func(c change) { c.host.btf = false }, []string{"the kernel has no BTF"}, false},
		{"no memory", func(c change) { c.host.available = 31 << 20 }, []string{"fast_path_memory is 32 MiB, of which 31 MiB are available"}, false},
		{"memory is not known", func(c change) { c.host.available = 0 }, nil, false},
		{"the kernel does not say who takes frames", func(c change) { c.host.taken = nil }, nil, false},
		{"no GRO", func(c change) { c.host.taken = func(i int) (bool, error) { return i != 7, nil } }, []string{"port p1: its peer takes no redirected frames"}, false},
		{"a rate", func(c change) { c.cfg.Ports[0].Rate = 1e9 }, []string{"port p1: it has a rate"}, false},
		{"ECN thresholds", func(c change) { c.cfg.Ports[0].Queue, c.cfg.Ports[0].ECN = 1<<18, config.ECN{KMax: 1} }, []string{"port p1: it has ECN thresholds"}, false},
		{"generic", func(c change) { c.cfg.XDP.Mode = config.XDPGeneric }, []string{"port p1: it runs XDP in generic mode"}, false},
		{"jumbo frames", func(c change) { *c.mtu = 9000 }, nil, false},
		{"jumbo frames on Linux 6.1", func(c change) { *c.mtu, c.host.release = 9000, "6.1.0-44-amd64" }, []string{"port p1: its MTU of 9000 takes several buffers, whose copies need Linux 6.6: groups with members there stay off"}, false},
		{"jumbo frames on Linux 6.1, required", func(c change) {
			*c.mtu, c.host.release, c.cfg.FastPath = 9000, "6.1.0-44-amd64", config.FastPathRequire
		}, []string{"need Linux 6.6: registrations with members there are rejected"}, false},
		{"generic, required", func(c change) { c.cfg.XDP.Mode, c.cfg.FastPath = config.XDPGeneric, config.FastPathRequire }, []string{"it runs XDP in generic mode: registrations with members there are rejected"}, false},
	} {
		cfg := config.Default()
		cfg.FastPath = "auto"
		cfg.Ports = []config.Port{{Name: "p1"}, {Name: "p2"}}
		h := &fastHost{release: "6.18.44-cloud", btf: true, available: 1 << 30, taken: func(int) (bool, error) { return true, nil }}
		link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "p1", Index: 7, MTU: 1500}}
		tc.change(change{h, cfg, &link.MTU})
		found := h.check(cfg, []netlink.Link{link, nil}, iface.Links{}.Kind, func(string) string { return "veth" })
		if len(found) != len(tc.want) {
			t.Errorf("%s: %v", tc.name, found)
			continue
		}
		for i, w := range tc.want {
			if f := found[i]; !strings.Contains(f.String(), w) || f.Fatal != tc.fatal || f.Severe != (strings.Contains(tc.name, "required") && !tc.fatal) || f.Repair() == "" {
				t.Errorf("%s: %v (fatal: %v), want %q", tc.name, f, f.Fatal, w)
			}
		}
	}
}

func TestAvailableMemory(t *testing.T) {
	for text, want := range map[string]int64{
		"": 0, "MemTotal: 5 kB\nMemAvailable:    1024 kB\nX: 1 kB\n": 1 << 20, "MemAvailable: x kB\n": 0, "MemAvailable:": 0,
	} {
		if is := availableMemory([]byte(text)); is != want {
			t.Errorf("%q: %d, want %d", text, is, want)
		}
	}
}
