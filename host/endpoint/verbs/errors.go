// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Error is a call of libibverbs that failed. It unwraps to its Errno.
type Error struct {
	Call  string // such as ibv_modify_qp (INIT to RTR)
	Errno unix.Errno
	Cause string // the usual one, and what to do; empty if there is none
}

// Error names the call, the error, and its usual cause.
func (e *Error) Error() string {
	name := unix.ErrnoName(e.Errno)
	if name == "" {
		name = fmt.Sprintf("errno %d", int(e.Errno))
	}
	s := fmt.Sprintf("%s: %s (%s)", e.Call, name, e.Errno.Error())
	if e.Cause != "" {
		s += ": " + e.Cause
	}
	return s
}

func (e *Error) Unwrap() error { return e.Errno }

// Calls as errors name them.
const (
	callList    = "ibv_get_device_list"
	callOpen    = "ibv_open_device"
	callDevice  = "ibv_query_device"
	callPort    = "ibv_query_port"
	callGIDs    = "ibv_query_gid_table"
	callPD      = "ibv_alloc_pd"
	callMR      = "ibv_reg_mr_iova"
	callDereg   = "ibv_dereg_mr"
	callChannel = "ibv_create_comp_channel"
	callCQ      = "ibv_create_cq"
	callArm     = "ibv_req_notify_cq"
	callPoll    = "ibv_poll_cq"
	callEvent   = "ibv_get_cq_event"
	callQP      = "ibv_create_qp"
	callInit    = "ibv_modify_qp (RESET to INIT)"
	callRTR     = "ibv_modify_qp (INIT to RTR)"
	callRTS     = "ibv_modify_qp (RTR to RTS)"
	callSend    = "ibv_post_send"
	callRecv    = "ibv_post_recv"
)

// causes are the usual ones, apart from those of RTR and memory.
var causes = map[string]map[unix.Errno]string{
	callList: {
		unix.ENOSYS: "the kernel has no RDMA: modprobe ib_uverbs, and the RNIC's driver or rdma_rxe",
		unix.EPERM:  "may this user see /sys/class/infiniband_verbs?",
	},
	callOpen: {
		unix.EACCES: "may this user open /dev/infiniband/uverbs*?",
		unix.EPERM:  "may this user, or container, open /dev/infiniband/uverbs*?",
		unix.ENOENT: "/dev/infiniband/uverbs* is missing: is ib_uverbs loaded, does udev run?",
		unix.ENODEV: "the device has gone, or belongs to another network namespace (rdma system show netns)",
	},
	callCQ: {
		unix.EINVAL: "MaxSend and MaxRecv together are more completions than the device can queue",
		unix.ENOMEM: "MaxSend and MaxRecv are larger than memory, or RLIMIT_MEMLOCK, has room for",
	},
	callQP: {
		unix.EINVAL: "the device cannot queue MaxSend or MaxRecv work requests",
		unix.ENOMEM: "the device has no queue pairs left, or RLIMIT_MEMLOCK has no room for the queues",
	},
	callChannel: {unix.EMFILE: "too many open files: every queue pair needs two (ulimit -n)"},
	callSend:    {unix.EINVAL: "the device refuses the work request, or the queue pair is not in RTS"},
	callRecv:    {unix.EINVAL: "the device refuses the work request, or the queue pair is in RESET"},
	callDereg:   {unix.EBUSY: "the region is still in use"},
}

func callError(call string, errno unix.Errno) error {
	return &Error{Call: call, Errno: errno, Cause: causes[call][errno]}
}

// rtrError explains a failed INIT to RTR: to is the peer, active the port's
// path MTU now.
func rtrError(errno unix.Errno, local, to netip.Addr, pathMTU, active int) error {
	e := &Error{Call: callRTR, Errno: errno}
	resolver := "ARP"
	if to.Is6() {
		resolver = "neighbour discovery"
	}
	switch errno {
	case unix.ETIMEDOUT, unix.EHOSTUNREACH, unix.ENODATA:
		e.Cause = fmt.Sprintf("nobody answers %s for %s: is it in gleamd's group_prefixes, is gleamd running? (if it is a host's address: is the host up?)", resolver, to)
	case unix.ENETUNREACH:
		e.Cause = fmt.Sprintf("there is no route to %s: give the interface an address of its subnet, or a route", to)
	case unix.EINVAL:
		switch {
		case pathMTU > active:
			e.Cause = fmt.Sprintf("path MTU %d is above the port's active MTU %d", pathMTU, active)
		case local.BitLen() != to.BitLen():
			e.Cause = fmt.Sprintf("%s and %s are of different families", local, to)
		case to.IsMulticast():
			e.Cause = fmt.Sprintf("%s is a multicast address: GroupIP is to be a unicast one", to)
		default:
			e.Cause = fmt.Sprintf("the usual causes are a path MTU (%d) above the active MTU, a GID of another family, or %s routed out of another interface (rp_filter, ip route get)", pathMTU, to)
		}
	case unix.ENODEV, unix.EXDEV:
		e.Cause = fmt.Sprintf("%s is not reached by this device's interface (ip route get %s), or the device is in another network namespace", to, to)
	}
	return e
}

// memoryError explains a failed registration of n bytes; limit is
// RLIMIT_MEMLOCK in bytes.
func memoryError(errno unix.Errno, n int, limit uint64) error {
	e := &Error{Call: callMR, Errno: errno}
	switch errno {
	case unix.ENOMEM:
		e.Cause = fmt.Sprintf("%d bytes cannot be locked", n)
		if limit != unix.RLIM_INFINITY {
			e.Cause += fmt.Sprintf(": RLIMIT_MEMLOCK is %d (ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit)", limit)
		}
	case unix.EFAULT:
		e.Cause = "the buffer is not mapped, or not writable"
	case unix.EINVAL:
		e.Cause = "the device cannot map the buffer at that address: use a buffer of verbs.Alloc, and an address that is a multiple of the page size"
	}
	return e
}
