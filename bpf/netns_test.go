// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// needRoot skips the test, or fails it where a skip is not allowed.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("GLEAM_REQUIRE_ROOT") == "1" {
		t.Fatal("needs root to load BPF programs, and GLEAM_REQUIRE_ROOT=1 forbids to skip")
	}
	t.Skip("needs root to load BPF programs: sudo -E go test")
}

// inNetns puts the test, with its thread, into a network namespace of its own.
func inNetns(t *testing.T) {
	t.Helper()
	needRoot(t)
	runtime.LockOSThread()
	old, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := netns.Set(old); err != nil {
			t.Error(err)
			return // the thread stays locked, so it ends with the goroutine
		}
		ns.Close()
		old.Close()
		runtime.UnlockOSThread()
	})
}

func addVeth(t *testing.T, name, peer string) netlink.Link {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: peer}); err != nil {
		t.Fatal(err)
	}
	l, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var testPrefixes = []netip.Prefix{
	netip.MustParsePrefix("10.77.0.0/16"),
	netip.MustParsePrefix("192.0.2.128/25"),
	netip.MustParsePrefix("fd00:77::/64"),
}

const testEnvelopePort = 4792

func newTestSteering(t *testing.T) *Steering {
	t.Helper()
	needRoot(t)
	s, err := NewSteering(testPrefixes, testEnvelopePort)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
