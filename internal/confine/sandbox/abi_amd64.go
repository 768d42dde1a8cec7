// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// abiRules are of calls that newer architectures do not have.
var abiRules = append(calls(allow, unix.SYS_POLL, unix.SYS_ACCEPT, unix.SYS_EPOLL_WAIT, unix.SYS_NEWFSTATAT, unix.SYS_ARCH_PRCTL,
	unix.SYS_READLINK, unix.SYS_UNLINK, unix.SYS_RENAME), calls(kill, unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_KEXEC_FILE_LOAD)...)
