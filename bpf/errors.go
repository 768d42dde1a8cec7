// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// ErrBusy means that an interface already has an XDP program.
var ErrBusy = errors.New("another XDP program is attached")

// explain adds the remedy to a failure of the BPF system call.
func explain(what string, err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES) && !isVerifier(err):
		return fmt.Errorf("%s: %w: this needs CAP_BPF and CAP_NET_ADMIN (or CAP_SYS_ADMIN), for instance as root", what, err)
	case isVerifier(err) && strings.Contains(err.Error(), "for !root"): // the verifier's words for a process without CAP_PERFMON
		return fmt.Errorf("%s: %w: this needs CAP_PERFMON (or CAP_SYS_ADMIN), for instance as root", what, err)
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("%s: %w: this needs Linux 5.10 or later with CONFIG_BPF_SYSCALL and CONFIG_XDP_SOCKETS", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// isVerifier reports whether err is the verifier's, which returns EACCES for a wrong
// program.
func isVerifier(err error) bool {
	var v *ebpf.VerifierError
	return errors.As(err, &v)
}

// explainAttach adds the remedy to a failure to attach. The kernel returns EBUSY if
// there is a program in the same mode, EEXIST if in another one (net/core/dev.c,
// dev_xdp_attach).
func explainAttach(ifname string, way attempt, err error) error {
	what := fmt.Sprintf("attach the XDP program to %s in %s mode", ifname, way.mode)
	buffers := "one buffer"
	if way.frags {
		buffers = "several buffers"
	}
	switch {
	case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EEXIST):
		return fmt.Errorf("%s: %w to %s (%w): is another gleamd running there? `ip link show dev %s` names the program", what, ErrBusy, ifname, err, ifname)
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("%s: %w: there is no such interface in this network namespace", what, err)
	case errors.Is(err, unix.ERANGE):
		return fmt.Errorf("%s: %w: the MTU is too large for XDP in %s: lower it (3498 is safe with 4 KiB pages)", what, err, buffers)
	}
	return explain(what, err)
}
