// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/test/labtest"
)

func TestVersions(t *testing.T) {
	for _, tt := range []struct {
		release string
		after   bool
	}{
		{"5.9.16", true}, {"4.19.0-21-amd64", true}, {"5.10.0-30-amd64", false}, {"5.11", false}, {"6.1.0", false}, {"10.2.0", false}, {"", false}, {"gnu", false},
	} {
		if is := Oldest.After(tt.release); is != tt.after {
			t.Errorf("%v is after %q: %v", Oldest, tt.release, is)
		}
	}
}

// A feature is present, absent or unknown, and what is absent is degraded.
func TestLook(t *testing.T) {
	answer := func(detail string, err error) func() (string, error) {
		return func() (string, error) { return detail, err }
	}
	k := look("5.4.0", []feature{
		{name: "here", use: "a", look: answer("madvise", nil)},
		{name: "gone", use: "b", cost: "slow", look: answer("CONFIG_GONE", errAbsent)},
		{name: "needed", use: "c", required: true, look: answer("", errAbsent)},
		{name: "hidden", use: "d", cost: "slow", look: answer("", unix.EPERM)},
		{name: "broken", use: "e", cost: "slow", look: answer("", errors.New("no answer"))},
	})
	var states []string
	for _, f := range k.Features {
		states = append(states, f.Name+" "+f.State+" "+f.Detail)
	}
	if got, want := strings.Join(states, ", "), "here present madvise, gone absent CONFIG_GONE, needed absent , hidden unknown root can see it, broken unknown no answer"; got != want {
		t.Errorf("features: %s\nwant %s", got, want)
	}
	want := []api.Degradation{
		TooOld("5.4.0"),
		{Feature: "gone", Text: "the kernel lacks gone (CONFIG_GONE)", Cost: "slow"},
		{Feature: "needed", Text: "the kernel lacks needed", Cost: CostNoStart},
	}
	if len(k.Degraded) != len(want) {
		t.Fatalf("degraded: %+v", k.Degraded)
	}
	for i, d := range k.Degraded {
		if d != want[i] {
			t.Errorf("degraded: %+v, want %+v", d, want[i])
		}
	}
	if k := look("5.10.0", nil); len(k.Degraded) != 0 || k.Degraded == nil {
		t.Errorf("of nothing, %#v is degraded", k.Degraded)
	}
}

// The answers of the kernel as they are read.
func TestAnswers(t *testing.T) {
	const protocols = "protocol  size sockets\nPACKET    1400      1\nXDP       1088      0\n"
	for _, tt := range []struct {
		name   string
		look   func() (string, error)
		detail string
		err    error
	}{
		{"AF_XDP is listed", func() (string, error) { return listed(protocols) }, "", nil},
		{"AF_XDP is not listed", func() (string, error) { return listed("protocol  size\nMPTCPv6 1 XDP\n") }, "CONFIG_XDP_SOCKETS", errAbsent},
		{"no list", func() (string, error) { return listed("") }, "", unix.EPERM},
		{"interpreted", func() (string, error) { return jitSetting("0") }, "net.core.bpf_jit_enable = 0", errAbsent},
		{"compiled", func() (string, error) { return jitSetting("1") }, "", nil},
		{"a BPF program type is not supported", tried(func() error { return ebpf.ErrNotSupported }), "", errAbsent},
		{"there is no BPF", tried(func() error { return unix.ENOSYS }), "CONFIG_BPF_SYSCALL", errAbsent},
		{"BPF is not allowed", tried(func() error { return unix.EPERM }), "", unix.EPERM},
	} {
		if detail, err := tt.look(); detail != tt.detail || !errors.Is(err, tt.err) {
			t.Errorf("%s: %q, %v; want %q, %v", tt.name, detail, err, tt.detail, tt.err)
		}
	}
	if _, err := jitSetting(""); err == nil || errors.Is(err, errAbsent) {
		t.Errorf("an unseen setting: %v", err)
	}
}

func TestSettings(t *testing.T) {
	root := t.TempDir()
	if HasBTF(root) || HugePages(root) != "" {
		t.Error("an empty machine has BTF or huge pages")
	}
	root = labtest.Files(t, map[string]string{HugePagesFile: "always [madvise] never", "/sys/kernel/btf/vmlinux": "x"})
	if !HasBTF(root) || HugePages(root) != "madvise" {
		t.Errorf("BTF: %v, huge pages: %q", HasBTF(root), HugePages(root))
	}
}

// Of the interfaces, those of devices are NICs.
func TestNICs(t *testing.T) {
	attrs := func(name, encap string) netlink.LinkAttrs {
		return netlink.LinkAttrs{Name: name, Index: 3, EncapType: encap}
	}
	list := nics([]netlink.Link{
		&netlink.Device{LinkAttrs: attrs("lo", "loopback")}, &netlink.Device{LinkAttrs: attrs("eth9", "ether")},
		&netlink.Veth{LinkAttrs: attrs("veth9", "ether")}, &netlink.Bridge{LinkAttrs: attrs("br9", "ether")},
	})
	if len(list) != 1 || list[0].Name != "eth9" || list[0].Index != 3 {
		t.Errorf("NICs: %+v", list)
	}
}
