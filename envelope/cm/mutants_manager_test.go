// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to serve connections.
var _ = []mutant.Mutant{
	mutant.New("a group is registered before all members are there", "CM", mutant.In((*listener).wanted,
		"l.count() < l.Expect", "l.count() < l.Expect-1")),
	mutant.New("a member that lingers is out at once", "CM", mutant.In((*Manager).handle,
		"if c.state == lingering && was != lingering {\n\t\tm.timers.set(c, m.now+lingerTime)",
		"if c.state == lingering && was != lingering {\n\t\tm.timers.set(c, m.now)")),
	mutant.New("a REQ may name other addresses than its packet", "CM", mutant.In((*Manager).request,
		"if q.Src != from || q.LocalGID != from || q.Dst != group || q.RemoteGID != group {",
		"if q.LocalGID != from || q.Dst != group || q.RemoteGID != group {")),
	mutant.New("the GID of a REQ may be another host's", "CM", mutant.In((*Manager).request,
		"if q.Src != from || q.LocalGID != from || q.Dst != group || q.RemoteGID != group {",
		"if q.Src != from || q.Dst != group || q.RemoteGID != group {")),
	mutant.New("a REQ without the MAC counts", "CM", mutant.In((*Manager).examine,
		"|| !q.authentic(key, port, b)", "")),
	mutant.New("a REQ from any address counts", "CM", mutant.In((*Manager).examine,
		"l.From != nil && !slices", "false && !slices")),
	mutant.New("members of another path MTU connect", "CM", mutant.In((*listener).admits,
		"mtuOf(q) != l.MTU &&", "mtuOf(q)+l.MTU < 0 &&")),
	mutant.New("one member too many connects", "CM", mutant.In((*listener).admits,
		"case others >= l.Expect:", "case others > l.Expect:")),
	mutant.New("a message of another host counts", "CM", mutant.In((*Manager).find,
		"c.peer.ip != from ||", "")),
	mutant.New("a DREQ for another queue pair counts", "CM", mutant.In((*Manager).Input,
		"x.DREQ.QPN != c.listener.QPN", "false && x.DREQ.QPN != c.listener.QPN")),
	mutant.New("two registrations at a time", "CM", mutant.In((*Manager).Wanted,
		"x.pending ||", "")),
	mutant.New("a silent host is a member for ever", "CM", mutant.In((*Manager).Advance,
		"case c.state == replied && c.tries == replyTries,", "case c.state == replied && c.tries < 0,")),
	mutant.New("a replaced member's end takes its successor out", "CM", mutant.In((*listener).leave,
		"l.members[c.record.IP] == c", "l.members[c.record.IP] != nil")),
	mutant.New("all connections have one CA GUID", "CM", mutant.In((*Manager).sendReply,
		"RNRRetry: 7, GUID: c.guid,", "RNRRetry: 7, GUID: c.guid&0 + 1,")),
	mutant.New("a member without a key in its private data has a MAC of another member", "CM", mutant.In(privateMAC,
		"h.Write(g[:])\n\th.Write(m[:])", "h.Write(g[:])\n\th.Write(m[:0])")),
}
