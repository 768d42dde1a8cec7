// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to make groups of REQs.
var _ = []mutant.Mutant{
	mutant.New("a REQ without the MAC makes a group", "CM", mutant.In((*Manager).creation,
		"|| !q.authentic(key, port, b)", "")),
	mutant.New("a REQ of another size joins", "CM", mutant.In((*Manager).examine,
		"data.expect > 0 && data.expect != l.Expect", "data.expect < 0")),
	mutant.New("a group made by a REQ is left behind", "CM", mutant.In((*listener).isVacant,
		"len(l.members) == 0 && l.ending == 0", "len(l.members) < 0 && l.ending == 0")),
	mutant.New("a group made by a REQ is closed while members leave", "CM", mutant.In((*listener).isVacant,
		"l.ending == 0 && len(l.registered) == 0 &&", "")),
	mutant.New("any group ends with its connections", "CM", mutant.In((*listener).isVacant,
		"l.Temporary && len(l.members) == 0 &&", "len(l.members) == 0 &&")),
}
