// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package privilege

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Each capability is named if it is what is missing. Kernels 6.18 refused gleamd
// without any one of the first four.
func TestMissingCapabilities(t *testing.T) {
	const user = 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_NET_RAW | 1<<unix.CAP_BPF | 1<<unix.CAP_PERFMON | 1<<unix.CAP_SETPCAP
	const all = user | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID
	for _, c := range []struct {
		has  uint64
		root bool
		want string
	}{
		{all, true, ""},
		{user, false, ""},
		{all&^(1<<unix.CAP_PERFMON) | 1<<unix.CAP_SYS_ADMIN, true, ""},
		{all &^ (1 << unix.CAP_NET_ADMIN), true, "CAP_NET_ADMIN"},
		{all &^ (1 << unix.CAP_NET_RAW), true, "CAP_NET_RAW"},
		{all &^ (1 << unix.CAP_BPF), true, "CAP_BPF"},
		{all &^ (1 << unix.CAP_PERFMON), true, "CAP_PERFMON"},
		{all &^ (1 << unix.CAP_SETPCAP), true, "CAP_SETPCAP"},
		{user, true, "CAP_SETUID CAP_SETGID"},
		{0, false, "CAP_NET_ADMIN CAP_NET_RAW CAP_BPF CAP_PERFMON CAP_SETPCAP"},
	} {
		if got := strings.Join(missing(c.has, c.root), " "); got != c.want {
			t.Errorf("%x: %q is missing, want %q", c.has, got, c.want)
		}
	}
}
