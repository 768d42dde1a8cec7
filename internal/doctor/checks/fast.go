// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"github.com/vishvananda/netlink"

	"github.com/gleam-rdma/gleam/bpf"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/iface"
	"github.com/gleam-rdma/gleam/internal/doctor/kernel"
)

// fastHost is what this machine has for the fast path.
type fastHost struct {
	release   string // the release of the kernel
	btf       bool   // the kernel describes its types
	available int64  // memory in bytes; 0: not known
	// taken reports whether an interface takes redirected frames; nil: the kernel does not say.
	taken func(ifindex int) (bool, error)
	// features returns what the driver of an interface has for XDP; nil: the kernel does not say.
	features func(ifindex int) (iface.XDPFeatures, error)
}

// readFastHost reads it from the kernel, and returns what is to be closed.
func readFastHost() (h fastHost, close func()) {
	h.release, h.btf = kernel.Release(), kernel.HasBTF("")
	if info, err := os.ReadFile("/proc/meminfo"); err == nil {
		h.available = availableMemory(info)
	}
	r, err := iface.OpenRedirects()
	if err != nil {
		return h, func() {}
	}
	h.taken, h.features = r.Taken, r.Features
	return h, func() { r.Close() }
}

// availableMemory reads /proc/meminfo; 0: it does not say.
func availableMemory(info []byte) int64 {
	for line := range bytes.Lines(info) {
		if f := bytes.Fields(line); len(f) >= 2 && string(f[0]) == "MemAvailable:" {
			kib, err := strconv.ParseInt(string(f[1]), 10, 64)
			if err == nil {
				return kib << 10
			}
		}
	}
	return 0
}

// check returns what keeps groups of a switch with this configuration from the fast path
// here. links are the ports' interfaces, by index in the configuration; nil: there is none.
func (h *fastHost) check(cfg *config.Config, links []netlink.Link, kind func(netlink.Link) *iface.Kind, driver func(name string) string) (found []Finding) {
	required := cfg.FastPath == config.FastPathRequire
	add := func(port, remedy, text string, args ...any) {
		found = append(found, Finding{Check: CheckFastPath, Note: !required, Port: port, Text: fmt.Sprintf(text, args...), Cost: "workers make these groups' copies", Remedy: remedy})
	}
	if kernel.OldestFastPath.After(h.release) {
		add("", "fast_path: off, or a newer kernel", "the fast path needs Linux %s, and this is %s", kernel.OldestFastPath, h.release)
		found[0].Fatal = required
		return found
	}
	if !h.btf {
		add("", "a kernel with CONFIG_DEBUG_INFO_BTF", "the kernel has no BTF: copies of the fast path that a driver loses are not counted")
	}
	if need := int64(cfg.FastPathMemory); h.available != 0 && h.available < need {
		add("", "a lower fast_path_memory", "fast_path_memory is %d MiB, of which %d MiB are available", need>>20, h.available>>20)
	}
	for i, link := range links {
		if link == nil {
			continue
		}
		a := link.Attrs()
		const stay = "groups with members there stay off the fast path"
		rejected := stay
		if required {
			rejected = "registrations with members there are rejected, as fast_path is require"
		}
		switch {
		case cfg.XDPModeOf(&cfg.Ports[i]) == config.XDPGeneric:
			add(a.Name, "xdp.mode: auto", "it runs XDP in generic mode: %s", rejected)
		case kind(link).Mode == config.XDPGeneric:
			add(a.Name, kind(link).How, "it is a %s, at which XDP runs in generic mode: %s", link.Type(), rejected)
		case a.MTU > bpf.MaxSingleBufferMTU && kernel.OldestClones.After(h.release):
			add(a.Name, "", "its MTU of %d takes several buffers, whose copies need Linux %s: %s", a.MTU, kernel.OldestClones, rejected)
			found[len(found)-1].Command = fmt.Sprintf("ip link set %s mtu %d", a.Name, bpf.MaxSingleBufferMTU)
		case cfg.Ports[i].Rate != 0:
			add(a.Name, "no rate for this port", "it has a rate: %s", stay)
		case cfg.Ports[i].HasOwnECN():
			add(a.Name, "the default thresholds, or ecn: off", "it has ECN thresholds, by which XDP does not mark: %s", stay)
		case h.features != nil && h.lacksNative(a.Index):
			add(a.Name, "a NIC whose driver has native XDP", "its driver (%s) has no native XDP: %s", driver(a.Name), rejected)
		case h.taken != nil && driver(a.Name) == "veth": // NICs say so only once a program is attached
			if taken, err := h.taken(a.Index); err == nil && !taken {
				add(a.Name, "at the peer: ethtool -K PEER gro on, or an XDP program there", "its peer takes no redirected frames: groups with receivers there stay off the fast path")
				found[len(found)-1].watched = true
			}
		}
	}
	for i := range found {
		found[i].Severe = found[i].Severe || required && found[i].Port != "" // registrations there are rejected
	}
	return found
}

// lacksNative reports whether the kernel says that no program runs in the driver of an interface.
func (h *fastHost) lacksNative(ifindex int) bool {
	x, err := h.features(ifindex)
	return err == nil && !x.Native()
}

// checkFastPath returns what keeps groups from the fast path, if they may take it.
func (s *hostNetwork) checkFastPath(cfg *config.Config) []Finding {
	if cfg.FastPath == config.FastPathOff {
		return nil
	}
	h, done := readFastHost()
	defer done()
	links := make([]netlink.Link, len(cfg.Ports))
	for i := range cfg.Ports {
		links[i] = s.links.Named(cfg.Ports[i].Name)
	}
	return h.check(cfg, links, s.links.Kind, iface.Driver)
}
