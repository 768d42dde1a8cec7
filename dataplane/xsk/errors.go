// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

func step(what string, err error) error { return fmt.Errorf("%s: %w", what, err) }

// explain adds a remedy to the error of a failed attempt to open a socket.
func explain(err error, cfg Config) error {
	switch {
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%w (%w): is another gleamd running there?", ErrBusy, err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: this needs CAP_NET_RAW, for instance as root", err)
	case errors.Is(err, unix.EAFNOSUPPORT):
		return fmt.Errorf("%w: this needs a kernel with CONFIG_XDP_SOCKETS", err)
	case errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ENOMEM):
		return fmt.Errorf("%w: not enough memory may be locked: raise RLIMIT_MEMLOCK (ulimit -l) or give CAP_IPC_LOCK", err)
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("%w: there is no such interface in this network namespace", err)
	case errors.Is(err, unix.EOPNOTSUPP) && cfg.MultiBuffer:
		return fmt.Errorf("%w: the driver has no zero-copy mode, or not for frames in several buffers; use copy mode", err)
	case errors.Is(err, unix.EINVAL) && cfg.MultiBuffer:
		return fmt.Errorf("%w: does the interface have a queue %d? `ethtool -l %s` shows how many there are; and frames in several buffers need Linux 6.6 or later", err, cfg.Queue, cfg.Ifname)
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%w: the driver has no zero-copy mode; use copy mode", err)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%w: does the interface have a queue %d? `ethtool -l %s` shows how many there are", err, cfg.Queue, cfg.Ifname)
	}
	return err
}
