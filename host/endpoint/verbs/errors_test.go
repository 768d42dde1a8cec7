// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestErrorsNameCallErrnoAndCause(t *testing.T) {
	group, local, six := addr("10.77.254.1"), addr("10.77.0.1"), addr("fd77::1")
	for _, c := range []struct {
		err  error
		is   unix.Errno
		want []string
	}{
		{rtrError(unix.ETIMEDOUT, local, group, 1024, 1024), unix.ETIMEDOUT, []string{
			"ibv_modify_qp (INIT to RTR): ETIMEDOUT (connection timed out): nobody answers ARP for 10.77.254.1: is it in gleamd's group_prefixes, is gleamd running?"}},
		{rtrError(unix.ETIMEDOUT, six, six, 1024, 1024), unix.ETIMEDOUT, []string{"nobody answers neighbour discovery for fd77::1"}},
		{rtrError(unix.ENETUNREACH, local, group, 1024, 1024), unix.ENETUNREACH, []string{"ENETUNREACH", "no route to 10.77.254.1"}},
		{rtrError(unix.EINVAL, local, group, 4096, 1024), unix.EINVAL, []string{"EINVAL", "path MTU 4096 is above the port's active MTU 1024"}},
		{rtrError(unix.EINVAL, local, six, 1024, 1024), unix.EINVAL, []string{"10.77.0.1 and fd77::1 are of different families"}},
		{rtrError(unix.EINVAL, local, addr("224.1.2.3"), 1024, 1024), unix.EINVAL, []string{"224.1.2.3 is a multicast address"}},
		{rtrError(unix.EINVAL, local, group, 1024, 1024), unix.EINVAL, []string{"usual causes", "GID of another family"}},
		{rtrError(unix.ENODEV, local, group, 1024, 1024), unix.ENODEV, []string{"ip route get 10.77.254.1"}},
		{rtrError(unix.EPERM, local, group, 1024, 1024), unix.EPERM, []string{"RTR): EPERM (operation not permitted)"}},
		{memoryError(unix.ENOMEM, 1<<20, 65536), unix.ENOMEM, []string{"ibv_reg_mr_iova: ENOMEM", "1048576 bytes cannot be locked: RLIMIT_MEMLOCK is 65536 (ulimit -l"}},
		{memoryError(unix.ENOMEM, 1<<20, unix.RLIM_INFINITY), unix.ENOMEM, []string{"cannot be locked"}},
		{memoryError(unix.EINVAL, 1, 0), unix.EINVAL, []string{"verbs.Alloc"}},
		{callError(callList, unix.ENOSYS), unix.ENOSYS, []string{"ibv_get_device_list: ENOSYS", "modprobe ib_uverbs"}},
		{callError(callQP, unix.Errno(5000)), 5000, []string{"ibv_create_qp: errno 5000"}},
	} {
		for _, want := range c.want {
			if !strings.Contains(c.err.Error(), want) {
				t.Errorf("%v\nlacks %q", c.err, want)
			}
		}
		var e *Error
		if !errors.Is(c.err, c.is) || !errors.As(c.err, &e) || e.Errno != c.is {
			t.Errorf("%v does not unwrap to errno %d", c.err, c.is)
		}
	}
	if s := memoryError(unix.ENOMEM, 1, unix.RLIM_INFINITY).Error(); strings.Contains(s, "RLIMIT") {
		t.Errorf("blames a limit that there is not: %s", s)
	}
}
