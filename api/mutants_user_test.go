// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong reports to operators and users.
var _ = []mutant.Mutant{
	mutant.New("the command line has a default virtual QPN of its own", "user", mutant.In(DefaultQPN,
		"= QPN(mcast.DefaultQPN)",
		"= QPN(mcast.DefaultQPN) &^ 0xfff")),
}
