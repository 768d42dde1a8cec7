// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package sandbox

import "golang.org/x/sys/unix"

// rules are what a running gleamd calls. The kernel walks the filter from the top
// where it does not cache the answer, so the calls of the packet loop come first.
var rules = append(append(calls(allow,
	// AF_XDP, wake-ups, scheduling of goroutines.
	unix.SYS_SENDTO, unix.SYS_PPOLL, unix.SYS_FUTEX, unix.SYS_RECVFROM, unix.SYS_READ, unix.SYS_WRITE,
	unix.SYS_EPOLL_PWAIT, unix.SYS_NANOSLEEP, unix.SYS_GETSOCKOPT, unix.SYS_SCHED_YIELD, unix.SYS_GETTID,
	unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_NANOSLEEP,

	// Go's runtime: memory, threads, signals.
	unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MINCORE, unix.SYS_BRK, unix.SYS_MREMAP,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
	unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_SCHED_GETAFFINITY, unix.SYS_SCHED_SETAFFINITY,
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_GETPID, unix.SYS_GETRANDOM, unix.SYS_UNAME,
	unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_GETTIMEOFDAY,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EVENTFD2, unix.SYS_PIPE2,

	// Sockets: the API, netlink, AF_XDP.
	unix.SYS_BIND, unix.SYS_CONNECT, unix.SYS_LISTEN, unix.SYS_ACCEPT4, unix.SYS_SHUTDOWN, unix.SYS_SETSOCKOPT,
	unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME, unix.SYS_SENDMSG, unix.SYS_RECVMSG,

	// Files, as far as the user may: configuration, keys, state, what the kernel says below /proc and /sys.
	unix.SYS_OPENAT, unix.SYS_CLOSE, unix.SYS_FCNTL, unix.SYS_FSTAT, unix.SYS_STATX, unix.SYS_LSEEK, unix.SYS_PREAD64, unix.SYS_PWRITE64,
	unix.SYS_GETDENTS64, unix.SYS_READLINKAT, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_FLOCK, unix.SYS_GETCWD,
	unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_MKDIRAT, unix.SYS_FTRUNCATE, unix.SYS_FSYNC, unix.SYS_FDATASYNC,
),
	// AF_XDP for ports whose interfaces are made anew. AF_INET for ethtool's ioctl, not for raw
	// packets, which CAP_NET_RAW would allow.
	rule{unix.SYS_SOCKET, allow, &cond{arg: 0, oneOf: []uint32{unix.AF_UNIX, unix.AF_NETLINK, unix.AF_XDP}, or: &cond{
		arg: 0, oneOf: []uint32{unix.AF_INET}, and: &cond{arg: 1, mask: 0xf, bits: unix.SOCK_DGRAM}, // below SOCK_NONBLOCK and SOCK_CLOEXEC
	}}},
	rule{unix.SYS_IOCTL, allow, &cond{arg: 1, oneOf: []uint32{unix.SIOCETHTOOL}}},
	rule{unix.SYS_MMAP, allow, &cond{arg: 2, mask: unix.PROT_EXEC}},
	rule{unix.SYS_MPROTECT, allow, &cond{arg: 2, mask: unix.PROT_EXEC}},
	rule{unix.SYS_CLONE, allow, &cond{arg: 0, mask: unix.CLONE_THREAD, bits: unix.CLONE_THREAD}},
	rule{unix.SYS_TGKILL, allow, &cond{arg: 0, ownPID: true}},
	rule{unix.SYS_PRCTL, allow, &cond{arg: 0, oneOf: []uint32{unix.PR_SET_VMA, unix.PR_GET_DUMPABLE}}},
	// Maps are read and filled, and loaded programs attached. No program is loaded any more.
	rule{unix.SYS_BPF, allow, &cond{arg: 0, oneOf: []uint32{
		unix.BPF_MAP_LOOKUP_ELEM, unix.BPF_MAP_UPDATE_ELEM, unix.BPF_MAP_DELETE_ELEM, unix.BPF_MAP_GET_NEXT_KEY,
		unix.BPF_MAP_LOOKUP_BATCH, unix.BPF_MAP_UPDATE_BATCH, unix.BPF_MAP_DELETE_BATCH, unix.BPF_OBJ_GET_INFO_BY_FD, unix.BPF_LINK_CREATE, unix.BPF_LINK_DETACH,
	}}},
), append(abiRules, calls(kill,
	unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS, unix.SYS_UNSHARE,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_SETUID, unix.SYS_SETRESUID, unix.SYS_SETGID, unix.SYS_SETRESGID,
	unix.SYS_SETGROUPS, unix.SYS_CAPSET, unix.SYS_PERSONALITY, unix.SYS_MEMFD_CREATE,
)...)...)

func calls(action uint32, nrs ...uint32) (rs []rule) {
	for _, nr := range nrs {
		rs = append(rs, rule{nr: nr, action: action})
	}
	return rs
}
