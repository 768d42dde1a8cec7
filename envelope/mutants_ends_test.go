// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

var _ = []mutant.Mutant{
	mutant.New("one answer is a restart", "Renew", mutant.In((*Member).questionAnswered,
		"if q.unknown++; q.unknown < unknownTwice {",
		"if q.unknown++; q.unknown < unknownTwice && false {")),
	mutant.New("an answer to another question is a restart", "Renew", mutant.In((*Member).asked,
		"|| !g.question.asked || msg.Transaction != g.question.tx ||",
		"||")),
	mutant.New("a question of a member extends the lease", "Renew", mutant.In((*Registrar).renew,
		"if r.isQuestion(m) {",
		"if r.isQuestion(m) && false {")),
	mutant.New("a member reports each copy of a notice", "Notice", mutant.In((*Member).handleNotice,
		"case n.Serial <= g.notice:",
		"case n.Serial <= g.notice && false:")),
	mutant.New("a refused Renew ends a Delete", "DeleteAfterARenew", mutant.In((*Master).stop,
		"ended, nil, nil, false, false",
		"ended, nil, nil, false, true")),
	mutant.New("a master reports each copy of a notice", "Notice", mutant.In((*Master).handleNotice,
		"case n.Serial <= m.notice:",
		"case n.Serial <= m.notice && false:")),
	mutant.New("an older notice is repeated beside the newer one", "Notice", mutant.In((*Registrar).queueNotice,
		"if e := r.events.notices[noticeTo{g.reg.Group, dst}]; e != nil {",
		"if e := r.events.notices[noticeTo{g.reg.Group, dst}]; e != nil && false {")),
	mutant.New("members of a failed group hear only of its end", "Notice", mutant.In((*Registrar).tellFailed,
		"if g.local() {",
		"if g.local() || true {")),
}
