// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "github.com/gleam-rdma/gleam/test/mutants/mutant"

// Wrong ways for several workers to share a switch. Their rule is the section of
// docs/ARCHITECTURE.md.
var _ = []mutant.Mutant{
	mutant.NewForRoot("a packet is handed on in part", "Several workers", mutant.In((*worker).enqueueHandoff,
		"if r.Room(need) < need {",
		"if r.Room(1) < 1 {")),
	mutant.NewForRoot("a port that floods takes all places", "Several workers", mutant.In((*worker).enqueueHandoff,
		"need += r.Size() / 2",
		"need += 0")),
	mutant.NewForRoot("a port's limits are asked behind the ring", "Several workers", mutant.In((*worker).dispatch,
		"case negative && !w.ports[pi].naks.take(w.now):",
		"case negative && false:")),
	mutant.NewForRoot("the port does not travel with the packet", "Several workers", mutant.In((*worker).enqueueHandoff,
		"d.Options |= uint32(pi) << portShift",
		"_ = pi")),
	mutant.NewForRoot("a packet that finds no room keeps its frames", "Several workers", mutant.In((*worker).enqueueHandoff,
		`w.count.drop[DropPostFull]++
		w.free(ds)`,
		"w.count.drop[DropPostFull]++")),
	mutant.NewForRoot("nobody rouses a worker that sleeps", "Several workers", mutant.In((*worker).dispatch,
		"w.crew.workers[to].rouse()",
		"_ = to")),
	mutant.NewForRoot("a worker sleeps with packets to open", "Several workers", mutant.In((*worker).prepareSleep,
		`if r.Waiting() > 0 {
			return false`,
		`if r.Waiting() > 0 {
			return true`)),
	mutant.NewForRoot("the sender takes more than its queue admits", "Several workers", mutant.In((*worker).drainRemoteRing,
		"case p.admits(size, len(ds)):",
		"default:"), mutant.In((*worker).drainRemoteRing,
		`default:
			e.left = n - taken`,
		`case false:
			e.left = n - taken`)),
	mutant.NewForRoot("what waits at the sender does not count", "Several workers", mutant.In((*port).refreshTXLimit,
		"p.queue.elsewhere = int(x.board.waiting.Load()) + int(x.handed-x.taken.Load())",
		"p.queue.elsewhere = int(x.handed - x.taken.Load())")),
	mutant.NewForRoot("what is on its way to the sender does not count", "Several workers", mutant.In((*port).refreshTXLimit,
		"p.queue.elsewhere = int(x.board.waiting.Load()) + int(x.handed-x.taken.Load())",
		"p.queue.elsewhere = int(x.board.waiting.Load())")),
	mutant.NewForRoot("an exit fills to the brim", "Several workers", mutant.In((*port).refreshTXLimit,
		"min(free, max(size/2, p.widest)-(size-free))",
		"free")),
	mutant.NewForRoot("an exit that nobody empties looks alive", "Several workers", mutant.In((*port).refreshTXLimit,
		"taken != x.seen || taken == x.handed {",
		"taken == x.seen || taken == x.handed {")),
	mutant.New("a group that has gone keeps its owner", "Several workers", mutant.In((*groupOwners).remove,
		`o.next = (o.next + 1) % formerGroups
		o.publish()`,
		"o.next = (o.next + 1) % formerGroups")),
	mutant.New("all groups go to one worker", "Several workers", mutant.In((*groupOwners).put,
		"o.load[worker]++",
		"")),
	mutant.New("tags hide the address", "Several workers", mutant.In(peekIP,
		"for kind == rocev2.EtherTypeVLAN || kind == rocev2.EtherTypeQinQ {",
		"for kind == rocev2.EtherTypeQinQ {")),
	mutant.NewForRoot("a group is steered to another worker's queue", "Several workers", mutant.In((*workers).queueOf,
		"at := ((worker-pi)%n + n) % n",
		"at := (worker + pi + 1) % n")),
	mutant.New("a worker's sleep that was too long is no pause", "R58", mutant.In((*worker).notePauses,
		"w.lost += late",
		"")),
	mutant.New("each late timer is a pause", "R58", mutant.In(pauseAt,
		"late > lateness {",
		"late > 0 {")),
	mutant.New("a pause counts when it is over", "R58", mutant.In((*pauseStatus).total,
		"return time.Duration(p.lost.Load()) + pause(due, now)",
		"return time.Duration(p.lost.Load()) + 0*pause(due, now)")),
	mutant.New("a pause counts while it lasts only", "R58", mutant.In((*worker).notePauses,
		"w.pulse.lost.Store(int64(w.lost))",
		"")),
	mutant.New("all workers hear all ports", "R58", mutant.In((*workers).receivesFrom,
		"return (i-pi%n+n)%n < len(c.ports[pi].all)",
		"return n > 0")),
	mutant.New("a port's rate delays nobody", "R59", mutant.In((*worker).setPortDelay,
		"if rate > 0 {",
		"if rate < 0 {")),
}
