// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"math"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane/iface"
)

// listed looks for AF_XDP in /proc/net/protocols.
func listed(protocols string) (string, error) {
	if protocols == "" {
		return "", unix.EPERM
	}
	for line := range strings.Lines(protocols) {
		if f := strings.Fields(line); len(f) > 0 && f[0] == "XDP" {
			return "", nil
		}
	}
	return "CONFIG_XDP_SOCKETS", errAbsent
}

// afXDPMultiBuffer looks for chains of descriptors in AF_XDP: the kernel looks at the flags of
// an address before it looks for the interface, of which there is none.
func afXDPMultiBuffer() (string, error) {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		return "there is no AF_XDP", errAbsent
	}
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	switch err := unix.Bind(fd, &unix.SockaddrXDP{Flags: unix.XDP_USE_SG, Ifindex: math.MaxInt32}); {
	case errors.Is(err, unix.ENODEV):
		return "", nil
	case errors.Is(err, unix.EINVAL):
		return "it needs Linux 6.6", errAbsent
	default:
		return "", err
	}
}

func seccomp() (string, error) {
	if read("", "/proc/self/status") == "" {
		return "", unix.EPERM
	}
	if !strings.Contains(read("", "/proc/self/status"), "\nSeccomp:") {
		return "CONFIG_SECCOMP", errAbsent
	}
	return "", nil
}

// jit looks for the compiler of BPF, which only the first network namespace shows.
func jit() (string, error) { return jitSetting(read("", "/proc/sys/net/core/bpf_jit_enable")) }

func jitSetting(text string) (string, error) {
	switch text {
	case "":
		return "", errors.New("/proc/sys/net/core/bpf_jit_enable is not seen in this network namespace")
	case "0":
		return "net.core.bpf_jit_enable = 0", errAbsent
	}
	return "", nil
}

func btf() (string, error) {
	if !HasBTF("") {
		return "CONFIG_DEBUG_INFO_BTF", errAbsent
	}
	return "", nil
}

func hugePages() (string, error) {
	switch s := HugePages(""); s {
	case "":
		return "CONFIG_TRANSPARENT_HUGEPAGE", errAbsent
	case "never":
		return s, errAbsent
	default:
		return s, nil
	}
}

// xdpFeatures looks for the answers that Interfaces wants.
func xdpFeatures() (string, error) {
	r, err := iface.OpenRedirects()
	if errors.Is(err, unix.ENOENT) {
		return "it needs Linux 6.3", errAbsent
	}
	if err != nil {
		return "", err
	}
	return "", r.Close()
}

// Interfaces returns what the drivers of interfaces have for XDP. The list is empty if the
// kernel does not say; an interface of which it does not is left out.
func Interfaces(links []Link) []api.XDPInterface {
	r, err := iface.OpenRedirects()
	if err != nil {
		return nil
	}
	defer r.Close()
	var list []api.XDPInterface
	for _, l := range links {
		has, err := r.Features(l.Index)
		if err != nil {
			continue
		}
		list = append(list, api.XDPInterface{
			Name: l.Name, Driver: l.Driver, Native: has.Native(), ZeroCopy: has.ZeroCopy(), MultiBuffer: has.MultiBuffer(), Redirect: has.Taken(),
		})
	}
	return list
}

// Link is an interface.
type Link struct {
	Name, Driver string
	Index        int
}
