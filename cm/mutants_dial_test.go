// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to dial listeners.
var _ = []mutant.Mutant{
	mutant.New("a dialler is connected before all listeners have answered", "CM", mutant.In((*listener).count,
		"c.state != lingering && c.state != dialling", "c.state != lingering")),
	mutant.New("listeners are connected before their dialler", "CM", mutant.In((*Manager).follow,
		"c == l.dialler && c.state == established", "c == l.dialler && c.state == 1")),
	mutant.New("listeners hear nothing of the dialler's end", "CM", mutant.In((*Manager).follow,
		"case c == l.dialler && isLeft:", "case false:")),
	mutant.New("a dialler waits for a listener that has refused", "CM", mutant.In((*Manager).follow,
		"(was == dialling || was == answered)", "(was == dialling && was == answered)")),
	mutant.New("the dialler of a leader that has left goes on", "CM", mutant.In((*Manager).follow,
		"c.record.Role == LeaderRole && isLeft", "c.record.Role == LeaderRole && !isLeft")),
	mutant.New("the group ends with the dialler's DREQ", "CM", mutant.In((*listener).wanted,
		"l.dialler != nil && l.dialler.state == lingering", "l.dialler != nil && l.dialler.state == 8")),
	mutant.New("an RTU is sent once", "CM", mutant.In((*Manager).handle,
		"if c.tries++; c.tries < rtuTries {", "if c.tries++; c.tries < rtuTries-2 {")),
	mutant.New("two sessions have one key", "CM", mutant.In((*Manager).assign,
		"if m.listeners[key] == nil {", "if m.listeners[key] == nil || true {")),
	mutant.New("all REQs to listeners have one GUID", "CM", mutant.In((*connection).request,
		"servicePrefix|uint64(c.port), c.guid,", "servicePrefix|uint64(c.port), 7,")),
	mutant.New("a REQ to a listener has the dialler's address", "CM", mutant.In((*connection).request,
		"q.LocalGID, q.Src, q.RemoteGID, q.Dst = l.Group, l.Group,", "q.LocalGID, q.Src, q.RemoteGID, q.Dst = l.Group, q.Src,")),
	mutant.New("listeners get private data that is for the switch", "CM", mutant.In((*Manager).dial,
		"l.Key == 0 && !l.Strip", "l.Key == 0")),
	mutant.New("any dialler ends another one's session", "CM", mutant.In((*Manager).openSession,
		"own := l.isBusy() && l.dialler.peer.ip == q.Src", "own := l.isBusy()")),
	mutant.New("a queue pair that dials again has two sessions", "CM", mutant.In((*Manager).openSession,
		"busy, oldest = f.Sessions, l", "busy++")),
	mutant.New("a session that waits never gets a key", "CM", mutant.In((*Manager).release,
		"m.assign(f.sessions[i])\n\t\tm.check(f.sessions[i])", "m.check(f.sessions[i])")),
	mutant.New("a listener dials itself", "CM", mutant.In((*Manager).openSession,
		"return a.Addr() == q.Src", "return false && a.Addr() == q.Src")),
	mutant.New("a REP with a queue pair that cannot be counts", "CM", mutant.In((*Manager).reply,
		"!x.Reply.QPN.Valid()", "x.Reply.QPN == 0")),
	mutant.New("listeners of a group that refuses replies may send", "CM", mutant.In((*Manager).dial,
		"ReceiveOnly: l.Replies == Refuse", "ReceiveOnly: l.Replies != Refuse")),
}
