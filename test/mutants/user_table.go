// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Wrong ways to tell operators and users what is going on.
var userMutants = []mutant{
	{"SIGHUP is not taken", "user", "cmd/gleamd/main.go", []edit{{
		"	signal.Notify(hangup, syscall.SIGHUP)\n",
		"	_ = syscall.SIGHUP\n",
	}}},
	{"one SIGHUP is answered, the next is not", "user", "cmd/gleamd/daemon.go", []edit{{
		"				log.Error(\"SIGHUP: nothing is reloaded, the keys are those of before\", zap.Error(err))\n			}\n",
		"				log.Error(\"SIGHUP: nothing is reloaded, the keys are those of before\", zap.Error(err))\n			}\n			return\n",
	}}},
	{"an interruption is told as an error", "user", "cli/cli.go", []edit{{
		"errors.Is(ctx.Err(), context.Canceled)",
		"errors.Is(ctx.Err(), context.DeadlineExceeded)",
	}}},
	{"an interruption hides what else went wrong", "user", "cli/cli.go", []edit{{
		"	joined, ok := err.(interface{ Unwrap() []error })\n	if !ok {",
		"	joined, ok := err.(interface{ Unwrap() []error })\n	if ok || !ok {",
	}}},
	{"the command line has a default virtual QPN of its own", "user", "api/validate.go", []edit{{
		"= uint32(mcast.DefaultQPN)",
		"= uint32(mcast.DefaultQPN) &^ 0xfff",
	}}},
	{"a master's group is replaced by hand", "user", "dataplane/replace.go", []edit{{
		"!old.Master.IsValid() && sameGroup(*old, *reg)",
		"sameGroup(*old, *reg)",
	}}},
	{"any group is replaced by hand", "user", "dataplane/replace.go", []edit{{
		"reg.Base != 0 || ",
		"reg.Base >= 0 || ",
	}}},
	{"an update by hand is a conflict", "user", "dataplane/replace.go", []edit{{
		"reg.Base != 0 || ",
		"",
	}}},
	{"stale feedback is shown as a loss", "user", "mcast/reason.go", []edit{{
		"NotSource, FromSource, FeedbackStale, DuplicateData",
		"NotSource, FromSource, DuplicateData",
	}}},
	{"a wrong QPN is shown as normal", "user", "mcast/reason.go", []edit{{
		"NotSource, FromSource, FeedbackStale, DuplicateData",
		"NotSource, FromSource, FeedbackStale, WrongQPN, DuplicateData",
	}}},
	{"a reason has no text", "user", "dataplane/counters.go", []edit{{
		"	DropQueueFull:      \"a port takes no more, since its egress queue is full or it does not transmit: this copy or answer alone was lost, and is repaired like a loss on the link\",\n",
		"",
	}}},
	{"the drops of the control plane are those of the core", "user", "dataplane/counters.go", []edit{{
		"func(c *counters) uint64 { return c.envelope[d] }",
		"func(c *counters) uint64 { return c.core[d] }",
	}}},
	{"a failure for silence is told as the NAK that the source got", "user", "mcast/eval.go", []edit{{
		"g.fail(m, g.nout, code, why, out)",
		"g.fail(m, g.nout, code, code, out)",
	}}},
	{"the events do not say why a group failed", "user", "dataplane/outcome.go", []edit{{
		"why := envelope.Cause(e.Cause)",
		"why := envelope.Cause(e.Syndrome)",
	}}},
	{"a group that has gone is not mentioned", "user", "dataplane/gone.go", []edit{{
		"		if c.gone[i].IP == ip {",
		"		if c.gone[i].IP != ip {",
	}}},
	{"the oldest group of an address is shown", "user", "cli/group_show.go", []edit{{
		"for i := len(gs) - 1; i >= 0; i-- {",
		"for i := range gs {",
	}}},
	{"one stray packet is a wrong number", "R72", "mcast/mismatch.go", []edit{{
		"const mismatchTimes = 4",
		"const mismatchTimes = 1",
	}}},
	{"a wrong number is told with every packet", "R72", "mcast/mismatch.go", []edit{{
		"m.Times > 0 && !m.told {",
		"m.Times > 0 {",
	}}},
	{"a gap is nobody's while no receiver has joined", "R72", "mcast/data.go", []edit{{
		"g.nrecv == 0 && g.njoin == 0 && g.hi.Less(psn)",
		"g.nrecv == 0 && g.hi.Less(psn)",
	}}},
	{"a first packet that got through at last does not settle it", "R72", "mcast/mismatch.go", []edit{{
		"	case psn == m.Want || m.Want.LessEq(g.a):\n		m.Times = 0\n",
		"",
	}}},
	{"the latest PSN is named, not the lowest", "R72", "mcast/mismatch.go", []edit{{
		"n == SendPSN && m.Seen.Less(seen)",
		"n == SendPSN && seen.Less(m.Seen)",
	}}},
	{"a failure does not name the wrong PSN", "R72", "mcast/eval.go", []edit{{
		"		g.tellMismatch(MemberID(g.src), SendPSN, out)\n",
		"",
	}}},
	{"a stranger's packets are a member's", "R72", "mcast/mismatch.go", []edit{{
		"ok && g.members[k].live {",
		"ok || g.members[k].live {",
	}}},
	{"the control loop does not hear of wrong numbers", "R72", "dataplane/outcome.go", []edit{{
		"	if o.Differing == g.known.differing {",
		"	if o.Differing >= g.known.differing {",
	}}},
	{"a wrong QPN is told as a wrong PSN", "R72", "dataplane/outcome.go", []edit{{
		"	if n == mcast.VirtualQPN {",
		"	if n != mcast.VirtualQPN {",
	}}},
	{"a receiver that saw all at once has a rate of its own", "user", "perf/result.go", []edit{{
		"res.Seconds <= r.seconds/atOnce",
		"res.Seconds <= 0",
	}}},
	{"rounds that lie apart are not named", "user", "bench/switchbench/steady.go", []edit{{
		"(high-low)/x.InPPS > spread",
		"(high-low)/x.InPPS > 3*spread",
	}}},
	{"idle time is taken for load", "user", "bench/switchbench/steady.go", []edit{{
		"if i == 3 || i == 4 {",
		"if i == 4 {",
	}}},
}
