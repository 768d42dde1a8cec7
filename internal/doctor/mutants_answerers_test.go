// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to tell who answers for a group.
var _ = []mutant.Mutant{
	mutant.New("whoever leads to a switch is taken for it", "Who answers", mutant.In((*answerer).isSwitch,
		"return a.claims && a.at == a.mac ||",
		"return a.claims ||")),
	mutant.New("a proof counts wherever it comes from", "Who answers", mutant.In((*answerer).isSwitch,
		"return a.claims && a.at == a.mac || a.proved && a.provedAt == a.mac",
		"return a.claims && a.at == a.mac || a.proved")),
	mutant.New("a challenge without a MAC proves a switch", "Who answers", mutant.In((*survey).note,
		"m.KeyID != 0 && m.KeyID == s.auth.Send",
		"m.KeyID != 1 || m.KeyID == s.auth.Send")),
	mutant.New("a challenge of another request proves a switch", "Who answers", mutant.In((*survey).note,
		"m.Epoch != a.attempt || m.Transaction != a.requested",
		"m.Transaction != a.requested")),
	mutant.New("an identification counts for all", "Who answers", mutant.In((*survey).note,
		"case a.nonce != x.Nonce:",
		"case a.nonce == x.Nonce && false:")),
	mutant.New("a stranger beside the switch is not named", "Who answers", mutant.In((*way).findings,
		"found = w.strangers(right[0], wrong)",
		"found = w.strangers(right[0], nil)")),
	mutant.New("a host alone is taken for the switch", "Who answers", mutant.In((*way).right,
		"if w.hop == w.group {\nreturn a.isSwitch()",
		"if w.hop == w.group {\nreturn a.isSwitch() || a.$1", answerer{}.resolved)),
}
