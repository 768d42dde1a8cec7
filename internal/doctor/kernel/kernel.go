// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package kernel says what the kernel has of what gleamd uses, and what gleamd does without
// where something is absent. It asks the kernel itself, by trying, and changes nothing.
package kernel

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/bpf"
)

// feature is a part of the kernel.
type feature struct {
	name     string
	use      string
	cost     string // the cost of its absence
	required bool
	look     func() (detail string, err error) // an error that is no errAbsent: unknown
}

// errAbsent is in the errors of what the kernel has not.
var errAbsent = errors.New("absent")

// features are all that are looked at, those without which gleamd does not start first.
var features = []feature{
	{name: "af_xdp", use: "takes packets of groups to the workers", required: true, look: afXDP},
	{name: "xdp", use: "program type, maps and helpers of the XDP program", required: true, look: tried(bpf.Supported)},
	{name: "seccomp", use: "keeps gleamd from system calls that it does not need", required: true, look: seccomp},
	{name: "fast_path", use: "program types, maps and helpers to copy packets in XDP", cost: "workers make the copies of all groups: fewer packets a second", look: fastPath},
	{name: "bpf_jit", use: "runs XDP programs as machine code", cost: "XDP programs are interpreted, which takes several times as long for each packet", look: jit},
	{name: "btf", use: "counts copies of the fast path that drivers lose", cost: "such copies are not counted", look: btf},
	{name: "xdp_multi_buffer", use: fmt.Sprintf("native XDP at ports with an MTU above %d", bpf.MaxSingleBufferMTU), cost: "such ports have generic XDP", look: tried(bpf.FragsSupported)},
	{name: "af_xdp_multi_buffer", use: "packets that are longer than a frame of packet memory (umem.frame_size)", cost: "ports with an MTU for such packets cannot be opened", look: afXDPMultiBuffer},
	{name: "xdp_features", use: "which interfaces take redirected frames", cost: "the fast path does not know which ports take its copies, and loses those that others do not take", look: xdpFeatures},
	{name: "huge_pages", use: "packet memory in transparent huge pages", cost: CostNoHugePages, look: hugePages},
}

// Look looks at the kernel below this process, with its privileges: without any, some features
// are unknown.
func Look() *api.Kernel { return look(Release(), features) }

func look(release string, features []feature) *api.Kernel {
	k := &api.Kernel{Release: release, Degraded: []api.Degradation{}}
	if Oldest.After(release) {
		k.Degraded = append(k.Degraded, TooOld(release))
	}
	for _, f := range features {
		detail, err := f.look()
		is := api.KernelFeature{Name: f.name, State: api.FeaturePresent, Detail: detail, Use: f.use, Required: f.required}
		switch {
		case errors.Is(err, errAbsent):
			is.State = api.FeatureAbsent
			cost := f.cost
			if f.required {
				cost = CostNoStart
			}
			k.Degraded = append(k.Degraded, api.Degradation{Feature: f.name, Text: "the kernel lacks " + f.name + inBrackets(detail), Cost: cost})
		case err != nil:
			is.State, is.Detail = api.FeatureUnknown, unknown(err)
		}
		k.Features = append(k.Features, is)
	}
	return k
}

// Costs of what is absent.
const (
	CostNoStart     = "gleamd does not start" // the cost of what is required
	CostNoHugePages = "each frame of packet memory is on a page of its own, so that the worker misses the TLB more often"
)

// TooOld is what is said of a release before Oldest.
func TooOld(release string) api.Degradation {
	return api.Degradation{Text: fmt.Sprintf("the kernel is Linux %s; %s is the oldest that AF_XDP works with here", release, Oldest), Cost: CostNoStart}
}

// OfFastPath reports whether a feature is of use to the fast path alone.
func OfFastPath(feature string) bool {
	return feature == "fast_path" || feature == "btf" || feature == "xdp_features"
}

// OffFastPath is what is said of a port that the fast path does not use.
func OffFastPath(port, reason string) api.Degradation {
	return api.Degradation{
		Port: port, Text: "the fast path does not use it: " + reason,
		Cost: "the worker makes the copies for receivers there, and the groups that have some stay off the fast path",
	}
}

// Generic is what is said of a port at which XDP runs in generic mode.
func Generic(port, driver string) api.Degradation {
	return api.Degradation{
		Port: port, Text: "XDP runs in generic mode" + inBrackets(prefixed("driver ", driver)),
		Cost: "the kernel makes an skb of each packet before XDP sees it: fewer packets a second, and groups with members there stay off the fast path",
	}
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// unknown says why a feature is unknown.
func unknown(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "root can see it"
	}
	return err.Error()
}

// tried makes a look of what the BPF library asks.
func tried(ask func() error) func() (string, error) {
	return func() (string, error) {
		err := ask()
		if errors.Is(err, unix.ENOSYS) {
			return "CONFIG_BPF_SYSCALL", errAbsent
		}
		if errors.Is(err, ebpf.ErrNotSupported) {
			return lacking(err), errAbsent
		}
		return "", err
	}
}

// lacking is what an error of the BPF library says beside that something is not supported.
func lacking(err error) string {
	if err == ebpf.ErrNotSupported {
		return ""
	}
	return err.Error()
}

// fastPath looks for what the fast path needs.
func fastPath() (string, error) {
	if r := Release(); OldestFastPath.After(r) {
		return fmt.Sprintf("it needs Linux %s", OldestFastPath), errAbsent
	}
	return tried(bpf.FastPathSupported)()
}

// afXDP looks for AF_XDP, by a socket if this process may have one.
func afXDP() (string, error) {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	switch {
	case err == nil:
		unix.Close(fd)
		return "", nil
	case errors.Is(err, unix.EPERM):
		return listed(read("", "/proc/net/protocols"))
	case errors.Is(err, unix.EAFNOSUPPORT):
		return "CONFIG_XDP_SOCKETS", errAbsent
	}
	return "", err
}
