// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// targetMutants are mistakes in when a port is taken off the fast path, and tried again.
var _ = []mutant.Mutant{
	mutant.New("a port that loses some copies is taken off the fast path", "fast path", mutant.In((*Target).loses,
		"t.lost >= least && t.lost > t.sent",
		"t.lost >= least")),
	mutant.New("losses are summed up for ever", "fast path", mutant.In((*Target).Look,
		"case now-t.begin >= targetWindow:",
		"case now-t.begin >= 1<<62:")),
	mutant.New("a port that loses all is tried as often as at first", "fast path", mutant.In((*Target).Look,
		"t.waits++",
		"t.waits = 1")),
	mutant.New("a trial without copies ends well", "fast path", mutant.In((*Target).Look,
		" && r.Transmitted.Sent != t.before.Transmitted.Sent",
		"")),
	mutant.New("losses of an interface before count", "fast path", mutant.In((*Target).Look,
		"t.seen, t.begin, t.before = true, now, *r",
		"t.seen, t.begin = true, now")),
	mutant.New("copies that no gate took are lost ones", "fast path", mutant.In((*Maps).Transmitted,
		"t.Lost = unsent - withheld",
		"t.Lost = unsent")),
}
