// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// abiRules are of calls that have another name elsewhere.
var abiRules = calls(allow, unix.SYS_FSTATAT)
