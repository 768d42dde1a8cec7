// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kept are the capabilities that a running switch still needs: CAP_NET_ADMIN to
// have the kernel resolve members' addresses, CAP_BPF to read the counters of
// the XDP programs. Ports and sockets have been opened by then.
var kept = []int{unix.CAP_NET_ADMIN, unix.CAP_BPF}

// needed are the capabilities without which gleamd does not start: to attach XDP
// programs, to make AF_XDP sockets, to load programs and maps, and to have the
// verifier admit arithmetic on packet pointers. CAP_SYS_ADMIN stands for the last
// two. Locked memory needs CAP_IPC_LOCK or a high RLIMIT_MEMLOCK beside them.
var needed = []struct {
	name string
	mask uint64
}{
	{"CAP_NET_ADMIN", 1 << unix.CAP_NET_ADMIN},
	{"CAP_NET_RAW", 1 << unix.CAP_NET_RAW},
	{"CAP_BPF", 1<<unix.CAP_BPF | 1<<unix.CAP_SYS_ADMIN},
	{"CAP_PERFMON", 1<<unix.CAP_PERFMON | 1<<unix.CAP_SYS_ADMIN},
}

// missingCapabilities names those of the needed capabilities that this process
// does not have.
func missingCapabilities() []string {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if unix.Capget(&hdr, &caps[0]) != nil {
		return nil // opening the ports will tell
	}
	return missing(uint64(caps[0].Effective) | uint64(caps[1].Effective)<<32)
}

func missing(effective uint64) (names []string) {
	for _, c := range needed {
		if effective&c.mask == 0 {
			names = append(names, c.name)
		}
	}
	return names
}

// dropPrivileges gives up, in all threads and for good, every capability but
// the kept ones, and the right to gain any by execve. It fails in a program
// built with cgo, where Go cannot reach all threads.
func dropPrivileges() error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&hdr, &caps[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	var keep [2]uint32
	for _, c := range kept {
		keep[c/32] |= 1 << (c % 32)
	}
	for i := range caps {
		caps[i].Effective &= keep[i]
		caps[i].Permitted &= keep[i]
		caps[i].Inheritable = 0
	}
	if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("set no_new_privs: %w", errno)
	}
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&hdr)), uintptr(unsafe.Pointer(&caps[0])), 0)
	if errno != 0 {
		return fmt.Errorf("set capabilities: %w", errno)
	}
	return nil
}

// giveTo makes the socket belong to a group of users. A group that does not
// exist leaves it root's, which said reports.
func giveTo(socket, group string) (said string, err error) {
	g, err := user.LookupGroup(group)
	if err != nil {
		return fmt.Sprintf("there is no group %s: only root can use the socket (groupadd --system %s)", group, group), nil
	}
	gid, err := strconv.Atoi(g.Gid)
	if err != nil {
		return "", fmt.Errorf("group %s has id %q: %w", group, g.Gid, err)
	}
	if err := os.Chown(socket, -1, gid); err != nil {
		return "", fmt.Errorf("give the socket %s to group %s: %w", socket, group, err)
	}
	return "", nil
}
