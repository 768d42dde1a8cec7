// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to tell operators and users what is going on.
var _ = []mutant.Mutant{
	mutant.NewForRoot("SIGHUP is not taken", "user", mutant.In(main,
		"signal.Notify(hangup, syscall.SIGHUP)",
		"_ = syscall.SIGHUP")),
	mutant.New("one SIGHUP is answered, the next is not", "user", mutant.In((*daemon).hear,
		`log.Error("gleamd has reloaded nothing at SIGHUP: the configuration is that of before", zap.Error(err))
			}`,
		`log.Error("gleamd has reloaded nothing at SIGHUP: the configuration is that of before", zap.Error(err))
			}
			return`)),
}
