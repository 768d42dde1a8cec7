// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
)

// tellDelay tells the hosts that wait for completions that their group stalls because of a member, or goes
// on: its source, and its master.
func (c *control) tellDelay(g *group, was, is dataplane.Delay) {
	n := envelope.Notice{Kind: envelope.NoticeStalled, PSN: is.PSN, Serial: uint64(time.Now().UnixNano())}
	by := is.Member
	switch {
	case is.Kind == dataplane.Stalled:
	case was.Kind == dataplane.Stalled:
		n.Kind, by = envelope.NoticeResumed, was.Member
	default:
		return
	}
	if !g.reg.Master.IsValid() {
		return // it was registered by hand: its hosts answer no envelopes
	}
	if int(by) >= len(g.slots) {
		return
	}
	source := g.applied().source
	if t := g.kept.turn; source == (envelope.MemberKey{}) && t != nil { // of before a restart
		for i := range g.slots {
			if s := &g.slots[i]; s.record.IP == t.Source && !s.gone {
				source = s.record.Key()
			}
		}
	}
	n.Member = g.slots[by].record.Key()
	c.registrar.Delayed(c.now(), g.reg.Group, &n, source, &c.out)
	c.sendOutput()
}
