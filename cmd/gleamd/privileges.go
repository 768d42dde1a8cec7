// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/internal/confine/privilege"
	"github.com/gleam-rdma/gleam/internal/confine/sandbox"
)

// kept are the capabilities that a running switch still needs: CAP_NET_ADMIN to
// have the kernel resolve members' addresses and to attach XDP programs, CAP_BPF to read
// the counters of the programs, CAP_NET_RAW to make AF_XDP sockets, of which the system
// call filter allows no others that are raw. A port whose interface is made anew needs a
// program, which is loaded by then, and sockets.
var kept = []int{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_BPF}

// confine takes from this process what a running switch does not need. id is the
// user that it becomes.
func confine(id privilege.Identity) error {
	return sandbox.Enter(sandbox.Limits{UID: id.UID, GID: id.GID, Capabilities: append(kept, toLockMemory()...)})
}

// toLockMemory makes sure that the packet memory can be registered again, which locks it,
// when all ports were gone at once: by the limit, else by CAP_IPC_LOCK, which it returns if
// this process has it.
func toLockMemory() []int {
	none := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if unix.Setrlimit(unix.RLIMIT_MEMLOCK, &none) == nil {
		return nil
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if unix.Capget(&hdr, &caps[0]) != nil || caps[0].Permitted&(1<<unix.CAP_IPC_LOCK) == 0 {
		return nil // the limit may suffice
	}
	return []int{unix.CAP_IPC_LOCK}
}
