// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package privilege

import "golang.org/x/sys/unix"

// RaiseMemlock raises the limit of locked memory of this process, if it has the right to: packet
// memory is locked again when a port is opened after gleamd has become another user. Where it
// has not, the check memlock says so.
func RaiseMemlock() {
	_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
}
