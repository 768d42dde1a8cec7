// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package trusted

import (
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Mistakes in the reading of files that decide who is trusted.
var _ = []mutant.Mutant{
	mutant.New("a pipe is waited for", "priv", mutant.In(read,
		"os.O_RDONLY|unix.O_NONBLOCK",
		"os.O_RDONLY|unix.$1", unix.O_CLOEXEC)),
	mutant.New("a file of somebody else is taken", "priv", mutant.In(Check,
		"s.Uid != 0 && int(s.Uid) != os.Geteuid()",
		"s.Uid == 0 && int(s.Uid) != os.Geteuid()")),
	mutant.New("a file that its group may change is taken", "priv", mutant.In(Check,
		"mode&closed != 0",
		"mode&closed&0o007 != 0")),
}
