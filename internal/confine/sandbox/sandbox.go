// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package sandbox takes away from a running process what it does not need any
// more: the user root, capabilities, the right to gain any, and most system calls.
// gleamd calls it once its ports and sockets are open. It knows nothing of what the
// process does. It needs a program without cgo, since Go reaches all threads only
// there.
package sandbox

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Limits are what is left to a process.
type Limits struct {
	UID, GID     int   // the identity of the process, not root's; if UID is that of the process already its groups stay
	Capabilities []int // permitted and effective; the bounding, inheritable and ambient sets are emptied
}

// step is one part of Enter.
type step struct {
	name   string
	remedy string
	run    func() error
}

// bounding empties the capability bounding set.
var bounding = step{"empty the capability bounding set", "give it CAP_SETPCAP, as root has it, or a bounding set without capabilities that it does not have: CapabilityBoundingSet in its unit", dropBounding}

// DropBounding does the part of Enter that takes longest, a system call in every thread for each
// capability that there is. It takes nothing from the process but what it could gain. It
// interrupts the system calls of other threads.
func DropBounding() error {
	if err := bounding.run(); err != nil {
		return bounding.fail(err)
	}
	return nil
}

// Enter confines all threads of this process, for good. After an error the process
// is confined in part and should end. The error names the step and a remedy.
func Enter(l Limits) error {
	filter, err := program(rules, unix.Getpid())
	if err != nil {
		return fmt.Errorf("confine this process: build the system call filter: %w", err)
	}
	change := l.UID != unix.Geteuid()
	var left uint64 // the capabilities of the bounding set that are left
	for _, s := range []step{
		{"set no_new_privs", "", func() error { return prctl(unix.PR_SET_NO_NEW_PRIVS, 1) }},
		bounding,
		{"read the capability bounding set", "", func() (err error) { left, err = boundingLeft(); return err }},
		{"keep capabilities over the change of the user", "", func() error { return prctl(unix.PR_SET_KEEPCAPS, 1) }},
		{fmt.Sprintf("become uid %d, gid %d", l.UID, l.GID), "give it CAP_SETUID and CAP_SETGID: start gleamd as root, or as the user itself", func() error { return become(l, change) }},
		{"clear the ambient capabilities", "", func() error { return prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL) }},
		{"set capabilities", "", func() error { return setCapabilities(l.Capabilities) }},
		{"forbid core dumps and tracing", "", func() error { return prctl(unix.PR_SET_DUMPABLE, 0) }},
		{"filter system calls", "a kernel with CONFIG_SECCOMP_FILTER is needed, and a container that allows seccomp(2)", func() error { return install(filter) }},
		{"see that all threads are confined", "/proc has to be mounted", func() error { return verify(l, left, change) }},
	} {
		if err := s.run(); err != nil {
			return s.fail(err)
		}
	}
	return nil
}

func (s step) fail(err error) error {
	remedy := s.remedy
	if errors.Is(err, unix.ENOTSUP) {
		remedy = "this gleamd was built with cgo: build it with CGO_ENABLED=0, as make build does"
	}
	if remedy != "" {
		return fmt.Errorf("confine this process: %s: %w; %s", s.name, err, remedy)
	}
	return fmt.Errorf("confine this process: %s: %w", s.name, err)
}

// prctl runs in all threads.
func prctl(option int, arg2 uintptr) error {
	return errnoOf(syscall.AllThreadsSyscall6(unix.SYS_PRCTL, uintptr(option), arg2, 0, 0, 0, 0))
}

func errnoOf(_, _ uintptr, errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// boundingSet returns the bounding set of this thread, a bit for each capability.
func boundingSet() (set uint64, err error) {
	for c := uintptr(0); c < 64; c++ {
		there, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		switch {
		case errors.Is(err, unix.EINVAL) && c > unix.CAP_CHOWN:
			return set, nil
		case err != nil:
			return 0, err
		}
		set |= uint64(there) << c
	}
	return set, nil
}

// boundingLeft returns what dropBounding has to leave.
func boundingLeft() (uint64, error) {
	if have, err := permitted(); err != nil || have&(1<<unix.CAP_SETPCAP) != 0 {
		return 0, err
	}
	return boundingSet()
}

// permitted returns the capabilities of this thread.
func permitted() (uint64, error) {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	err := unix.Capget(&hdr, &caps[0])
	return uint64(caps[0].Permitted) | uint64(caps[1].Permitted)<<32, err
}

// dropBounding empties the bounding set of all threads, unless MayKeepBounding.
func dropBounding() error {
	set, err := boundingSet()
	if err != nil {
		return err
	}
	for c := range 64 {
		if set&(1<<c) == 0 {
			continue
		}
		err := prctl(unix.PR_CAPBSET_DROP, uintptr(c))
		if errors.Is(err, unix.EPERM) && MayKeepBounding() {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// MayKeepBounding reports whether the bounding set needs no emptying, for which this process
// may lack CAP_SETPCAP: it is not root's, and has each capability of the set. The set bounds
// what a program could gain that is executed, and none is.
func MayKeepBounding() bool {
	set, err := boundingSet()
	have, unread := permitted()
	return err == nil && unread == nil && unix.Geteuid() != 0 && set&^have == 0
}

// become changes the user and the group, and leaves all supplementary groups.
func become(l Limits, change bool) error {
	if l.UID <= 0 || l.GID <= 0 {
		return errors.New("root is no user to become")
	}
	if !change {
		return nil
	}
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setresgid(l.GID, l.GID, l.GID); err != nil {
		return err
	}
	return syscall.Setresuid(l.UID, l.UID, l.UID)
}

// setCapabilities leaves those of keep that there are.
func setCapabilities(keep []int) error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&hdr, &caps[0]); err != nil {
		return err
	}
	var mask [2]uint32
	for _, c := range keep {
		mask[c/32] |= 1 << (c % 32)
	}
	for i := range caps {
		caps[i].Permitted &= mask[i]
		caps[i].Effective = caps[i].Permitted
		caps[i].Inheritable = 0
	}
	return errnoOf(syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&hdr)), uintptr(unsafe.Pointer(&caps[0])), 0))
}
