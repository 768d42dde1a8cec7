// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong orders of events, and wrong times of ports.
var _ = []mutant.Mutant{
	mutant.New("events of one time are ordered by when they were made", "SIMULATION.md, Determinism", mutant.In((*queue).compare,
		"return cmp.Compare(q.today[a.i].key, q.today[b.i].key)",
		"return cmp.Compare(a.i, b.i)")),
	mutant.New("ports of arrival do not order events", "SIMULATION.md, Determinism", mutant.In((*queue).compare,
		`case a.at != b.at:
		return cmp.Compare(a.at, b.at)
	case a.in != b.in:
		return cmp.Compare(a.in, b.in)`,
		`case a.at != b.at:
		return cmp.Compare(a.at, b.at)`)),
	mutant.New("an event at the end of a window is served within it", "SIMULATION.md, Determinism", mutant.In((*queue).pop,
		"if p.at >= until {",
		"if p.at > until {")),
	mutant.New("a packet leaves before the one in front of it", "SIMULATION.md, Model", mutant.In((*Partition).transmitOn,
		"o.freeAt = max(p.now+p.ahead, o.freeAt) + length",
		"o.freeAt = p.now + p.ahead + length")),
	mutant.New("an idle port sends in the past", "SIMULATION.md, Model", mutant.In((*Partition).transmitOn,
		"o.freeAt = max(p.now+p.ahead, o.freeAt) + length",
		"o.freeAt = o.freeAt + length")),
	mutant.New("a packet that does not fit whole is taken", "SIMULATION.md, Model", mutant.In((*Partition).send,
		"if backlog+length > o.most {",
		"if backlog > o.most {")),
	mutant.New("feedback is marked", "SIMULATION.md, Model", mutant.In((*Partition).send,
		"if backlog > o.ecnMin && !e.isFeedback() && o.mustMark(backlog) {",
		"if backlog > o.ecnMin && o.mustMark(backlog) {")),
	mutant.New("random numbers are not counted by port", "SIMULATION.md, Determinism", mutant.In((*port).draw,
		"return mix(p.seed + p.random*0x9E3779B97F4A7C15)",
		"return mix(p.random * 0x9E3779B97F4A7C15)")),
	mutant.New("a loss of one direction is that of the other one, too", "SIMULATION.md, Model", mutant.In((*Simulation).build,
		"kinds.of(&s.cfg, &t.Links[at.Link], at.Peer)",
		"kinds.of(&s.cfg, &t.Links[at.Link], at.Peer+1)")),
}

// Wrong windows of partitions.
var _ = []mutant.Mutant{
	mutant.New("windows are longer than a packet between partitions takes", "SIMULATION.md, Determinism", mutant.In((*Simulation).build,
		"s.lookahead = min(s.lookahead, p.delay+p.timeOf(frameBytes))",
		"s.lookahead = min(s.lookahead, 2*p.delay+p.timeOf(frameBytes))")),
	mutant.New("what is sent to another partition is served by the own one", "SIMULATION.md, Determinism", mutant.In((*Partition).transfer,
		"if o.partition == p.index {",
		"if o.partition >= p.index {")),
}

// Wrong ways to hold packets back.
var _ = []mutant.Mutant{
	mutant.New("a packet is no longer held when its first copy has left", "SIMULATION.md, Model", mutant.In((*Partition).release,
		"if h.copies--; h.copies > 0 {",
		"if h.copies--; h.copies < 0 {")),
	mutant.New("a packet counts once for each copy", "SIMULATION.md, Model", mutant.In((*Partition).hold,
		`if p.came.held == 0 {
		in := p.came.port - 1`,
		`if p.came.held >= 0 {
		in := p.came.port - 1`)),
	mutant.New("a paused port sends", "SIMULATION.md, Model", mutant.In((*Partition).sendNext,
		"if w.sending || w.paused || w.first == len(w.queue) {",
		"if w.sending || w.first == len(w.queue) {")),
	mutant.New("a pause does not end", "SIMULATION.md, Model", mutant.In((*Partition).release,
		"p.sendPause(x.port, 0)",
		"p.sendPause(x.port, 1)")),
	mutant.New("a host's port is not free after a pause", "SIMULATION.md, Model", mutant.In((*Partition).pauseArrived,
		`p.sendNext(e.in)
		p.hostMayTransmit(e.in)`,
		"p.sendNext(e.in)")),
}

// Wrong trains.
var _ = []mutant.Mutant{
	mutant.New("what comes between the packets of a train is not counted", "SIMULATION.md, Model", mutant.In((*Partition).mix,
		"if at <= o.trainUntil {",
		"if at < 0 && at <= o.trainUntil {")),
	mutant.New("a train loses nothing", "SIMULATION.md, Model", mutant.In((*Partition).sendTrain,
		"o.damaged != 0 ||",
		"")),
	mutant.New("a train is not marked", "SIMULATION.md, Model", mutant.In((*Partition).sendTrain,
		"longest+length > o.most || longest > o.ecnMin ||",
		"longest+length > o.most ||")),
	mutant.New("a train fits if its first packet does", "SIMULATION.md, Model", mutant.In((*Partition).sendTrain,
		"if longest+length > o.most ||",
		"if length > o.most ||")),
	mutant.New("the packets of a train leave as they have come on a slower link", "SIMULATION.md, Model", mutant.In((*Partition).sendTrain,
		"out := max(gap, length)",
		"out := gap + 0*length")),
	mutant.New("a train is served when its first packet has come", "SIMULATION.md, Model", mutant.In((*Partition).sendTrain,
		"e.at += Time(lead(count, asks)) * out",
		"e.at += Time(lead(count, asks)) * 0 * out")),
	mutant.New("the rest of a train comes at once", "SIMULATION.md, Model", mutant.In((*Partition).trainArrived,
		"next.at = p.now + gap",
		"next.at = p.now + 0*gap")),
	mutant.New("a train ends anywhere", "SIMULATION.md, Model", mutant.In((*Partition).budget,
		"n -= (n + c.sinceAsk) % every",
		"n -= 0 * (n + c.sinceAsk) % every")),
	mutant.New("trains of a host take turns with nobody", "SIMULATION.md, Model", mutant.In((*Partition).budget,
		"if n <= 1 || h.first != nil || !c.acked {",
		"if n <= 1 || !c.acked {")),
}
