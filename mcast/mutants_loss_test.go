// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// Mistakes in the repair of links between switches.
var _ = []mutant.Mutant{
	mutant.New("another switch gets everything behind a NAK", "R92", mutant.In((*group).serveSwitch,
		"n := 1",
		"n := 64")),
	mutant.New("a switch without room gets one packet at a time", "R92", mutant.In((*group).serveSwitch,
		"if m.burst != 0 && e == m.burstEnd {",
		"if m.burst != 0 && e == m.burstEnd && false {")),
	mutant.New("bursts grow after every NAK", "R92", mutant.In((*group).serveSwitch,
		"if m.burst != 0 && e == m.burstEnd {",
		"if m.burst != 0 {")),
	mutant.New("an old burst makes the next one larger", "R92", mutant.In((*group).onProgress,
		"if b.acked == g.fwd.nxt.Prev() {",
		"if b.acked == g.fwd.nxt {")),
	mutant.New("a burst goes on to the end", "R92", mutant.In((*group).endOfBurst,
		"m.untilProbe == 1 || ",
		"")),
	mutant.New("after a burst the leg gets what it has", "R92", mutant.In((*recovery).skipTo,
		"m.cursor, m.untilProbe = m.firstUnsent, 0",
		"m.untilProbe = 0")),
	mutant.New("what was lost before this switch does not pass to the next", "R92", mutant.In((*group).switchTakes,
		`case fresh:
		m.burst, m.burstEnd = 1, psn.Next()
		return true, false`,
		`case fresh:
		m.burst, m.burstEnd = 1, psn.Next()
		return false, false`)),
	mutant.New("all that the source repeats passes to the next switch", "R92", mutant.In((*group).switchTakes,
		"case fresh:",
		"case fresh, !fresh:")),
	mutant.New("a switch that is ahead is probed when the source goes back", "R92", mutant.In((*group).switchTakes,
		"(!m.storeServes(b) || una == g.agg.acked.Next())",
		"(!m.storeServes(b) || una != una.$1())", rocev2.PSN.Next)),
	mutant.New("the source's timeout is no probe to the next switch", "R92", mutant.In((*group).switchTakes,
		"(!m.storeServes(b) || una == g.agg.acked.Next())",
		"!m.storeServes(b)")),
	mutant.New("new data overtakes the cursor of a leg to a switch", "R92", mutant.In((*group).switchTakes,
		"if psn != m.cursor || m.storeServes(b) && g.repair.store.find(psn) != nil {",
		"if m.storeServes(b) && g.repair.store.find(psn) != nil {")),
	mutant.New("a NAK of a switch needs everything behind it", "R92", mutant.In((*group).canServe,
		"if g.acks[i].flags&isConnected == 0 || g.src.neighbor != 0 {",
		"if g.acks[i].flags&isConnected == 0 && g.src.neighbor == 1<<31 {")),
	mutant.New("below another switch a NAK needs everything behind it", "R92", mutant.In((*group).canServe,
		"if g.acks[i].flags&isConnected == 0 || g.src.neighbor != 0 {",
		"if g.acks[i].flags&isConnected == 0 {")),
	mutant.New("a switch above is expected to go back", "R92", mutant.In((*group).expectedFromSource,
		"if g.src.neighbor != 0 {",
		"if g.src.neighbor == 1<<31 {")),
	mutant.New("all switches probe at the same time", "R92", mutant.In((*group).probeTimeout,
		"g.repair.timeout*time.Duration(1+g.levelsBehind(i))",
		"g.repair.timeout*time.Duration(1+0*g.levelsBehind(i))")),
	mutant.New("a round trip is measured over a loss", "R92", mutant.In((*group).nakReceived,
		"g.activity[i].recovery.lossAt = now",
		"")),
	mutant.New("a refused burst makes everything go out again", "R92", mutant.In((*Switch).Requeue,
		"case b.flags&isConnected == 0 && m.inBurst(psn):",
		"case b.flags&isConnected == 0 && m.inBurst(psn) && false:")),
	mutant.New("a switch may lag no more than a receiver", "R93", mutant.In((*group).lagPSNsOf,
		"<< g.levelsBehind(i)",
		"<< min(g.levelsBehind(i), 0)")),
	mutant.New("a switch may lag no longer than a receiver", "R93", mutant.In((*group).lagTimeOf,
		"<< g.levelsBehind(i)",
		"<< min(g.levelsBehind(i), 0)")),
	mutant.New("a lag limit exceeds what comparisons allow", "R93", mutant.In((*group).lagPSNsOf,
		"int32(min(int64(g.lag.psns)<<g.levelsBehind(i), maxBehind))",
		"int32(int64(g.lag.psns)<<g.levelsBehind(i))")),
	mutant.New("receivers are scanned by the limit of switches", "R93", mutant.In((*group).evictLaggards,
		"b.acked.Add(g.lagPSNsOf(i)-g.lag.psns)",
		"b.acked.Add(g.lagPSNsOf(i)+g.lag.psns)")),
}
