// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to ask where members are. internal/control/doc.go, Places, has the rules.
var _ = []mutant.Mutant{
	mutant.New("renewals are requests like others", "Places", mutant.In(IsRenewal,
		"Type(b[typeOffset]) == TypeRenew",
		"Type(b[typeOffset]) == 0")),
}
