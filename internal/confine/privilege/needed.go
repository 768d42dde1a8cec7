// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package privilege

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/internal/confine/sandbox"
)

// needed are the capabilities without which gleamd does not start: to attach XDP
// programs, to make AF_XDP sockets, to load programs and maps, to have the verifier
// admit arithmetic on packet pointers, and to give all up. CAP_SYS_ADMIN stands for
// the fourth; CAP_BPF itself is kept. Root needs the last two to become
// another user. Locked memory needs CAP_IPC_LOCK or a high RLIMIT_MEMLOCK beside them.
var needed = []struct {
	name string
	mask uint64
	root bool
}{
	{"CAP_NET_ADMIN", 1 << unix.CAP_NET_ADMIN, false},
	{"CAP_NET_RAW", 1 << unix.CAP_NET_RAW, false},
	{"CAP_BPF", 1 << unix.CAP_BPF, false},
	{"CAP_PERFMON", 1<<unix.CAP_PERFMON | 1<<unix.CAP_SYS_ADMIN, false},
	{setPCap, 1 << unix.CAP_SETPCAP, false},
	{"CAP_SETUID", 1 << unix.CAP_SETUID, true},
	{"CAP_SETGID", 1 << unix.CAP_SETGID, true},
}

// setPCap is not needed where there is nothing to drop from the bounding set.
const setPCap = "CAP_SETPCAP"

// Missing names those of the needed capabilities that this process
// does not have.
func Missing() (names []string) {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if unix.Capget(&hdr, &caps[0]) != nil {
		return nil // opening the ports will tell
	}
	names = missing(uint64(caps[0].Effective)|uint64(caps[1].Effective)<<32, os.Geteuid() == 0)
	return slices.DeleteFunc(names, func(name string) bool { return name == setPCap && sandbox.MayKeepBounding() })
}

func missing(effective uint64, root bool) (names []string) {
	for _, c := range needed {
		if effective&c.mask == 0 && (root || !c.root) {
			names = append(names, c.name)
		}
	}
	return names
}
