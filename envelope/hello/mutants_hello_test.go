// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package hello

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to believe in a neighbour. Their rule is the section of docs/PROTOCOL.md.
var _ = []mutant.Mutant{
	mutant.New("any HMAC of a hello will do", "PROTOCOL.md §11", mutant.In(Open,
		"!hmac.Equal(macOf(key, b[:n]), b[n:])",
		"len(macOf(key, b[:n])) != len(b[n:])")),
	mutant.New("a hello may be longer than it says", "PROTOCOL.md §11", mutant.In(Open,
		"int(be.Uint16(b[10:])) != len(b)",
		"int(be.Uint16(b[10:])) > len(b)")),
	mutant.New("an own hello is another switch's", "PROTOCOL.md §11", mutant.In((*Link).Input,
		`case m.Speaker == l.config.Speaker:
		drop = Reflected
	case m.ID == l.config.ID:
		drop = OwnID`,
		`case m.ID == l.config.ID:
		drop = OwnID`)),
	mutant.New("another switch may have this one's ID", "PROTOCOL.md §11", mutant.In((*Link).Input,
		`case m.Speaker == l.config.Speaker:
		drop = Reflected
	case m.ID == l.config.ID:
		drop = OwnID`,
		`case m.Speaker == l.config.Speaker:
		drop = Reflected`)),
	mutant.New("the frame's source may be anybody", "PROTOCOL.md §11", mutant.In((*Link).Input,
		"case m.MAC != from:",
		"case m.MAC != from && from == m.MAC:")),
	mutant.New("a link that is down hears", "PROTOCOL.md §11", mutant.In((*Link).Input,
		`if !l.up {
		out.Drop = LinkIsDown
		return
	}`,
		"")),
	mutant.New("any number of switches is heard", "PROTOCOL.md §11", mutant.In((*Link).peer,
		"len(l.peers) == MaxNeighbours && !l.forget()",
		"len(l.peers) == 100*MaxNeighbours && !l.forget()")),
	mutant.New("a hello that lists nobody proves its sender", "PROTOCOL.md §11", mutant.In((*Link).believe,
		"echoes := of.Echo == p.challenge",
		"echoes := of.Echo == p.challenge || of.Echo == 0")),
	mutant.New("any echo proves", "PROTOCOL.md §11", mutant.In((*Link).believe,
		"echoes := of.Echo == p.challenge",
		"echoes := of.Echo != 0")),
	mutant.New("an echo for another switch proves", "PROTOCOL.md §11", mutant.In((*Link).believe,
		`if h.Speaker == l.config.Speaker {
			of = h
		}`,
		"of = h")),
	mutant.New("a neighbour that hears nobody stays up", "PROTOCOL.md §11", mutant.In((*Link).believe,
		"case !echoes && p.proved:",
		"case !echoes && p.proved && echoes:")),
	mutant.New("a former life keeps its challenge", "PROTOCOL.md §11", mutant.In((*Link).retire,
		"o.proved, o.former, o.challenge = false, true, l.draw()",
		"o.proved, o.former = false, true")),
	mutant.New("a former life is a second neighbour", "PROTOCOL.md §11", mutant.In((*Link).retire,
		"o.ID == p.ID && o != p",
		"o.ID != p.ID && o != p")),
	mutant.New("two switches of one ID take turns", "PROTOCOL.md §11", mutant.In((*Link).believe,
		`if !p.former {
			l.retire(p)
		}`,
		"l.retire(p)")),
	mutant.New("the first of two neighbours is up", "PROTOCOL.md §11", mutant.In((*Link).judge,
		"case p.proved && best != nil:",
		"case p.proved && best != nil && best == nil:")),
	mutant.New("the hold time is one interval", "PROTOCOL.md §11", mutant.In((*Link).Input,
		"now+Multiplier*m.Interval",
		"now+m.Interval")),
	mutant.New("the hold time is this switch's own", "PROTOCOL.md §11", mutant.In((*Link).Input,
		"now+Multiplier*m.Interval",
		"now+Multiplier*$1", DefaultInterval)),
	mutant.New("nobody is silent", "PROTOCOL.md §11", mutant.In((*Link).Advance,
		"p.deadline <= now",
		"p.deadline < 0")),
	mutant.New("a carrier's loss ends nothing", "PROTOCOL.md §11", mutant.In((*Link).SetLink,
		"l.up, l.peers, l.next = up, nil, now",
		"l.up, l.next = up, now")),
	mutant.New("hellos of others cause any number", "PROTOCOL.md §11", mutant.In((*Link).hurry,
		"max(now, l.paced-2*l.gap())",
		"now")),
	mutant.New("the neighbour of a switch that starts waits with its second answer", "PROTOCOL.md §11", mutant.In((*Link).hurry,
		"l.paced-2*l.gap()",
		"l.paced-l.gap()")),
	mutant.New("a restart is no event of its own", "PROTOCOL.md §11", mutant.In((*Link).decide,
		"l.state == Up && state == Up && best.Session != l.best.Session",
		"l.state == Up && state != Up && best.Session != l.best.Session")),
	mutant.New("an adjacency that was lost goes on under its number", "PROTOCOL.md §11", mutant.In((*Link).decide,
		"if peer != nil && peer.spent {",
		"if peer != nil && peer.spent && peer == nil {")),
	mutant.New("a challenge serves any number of adjacencies", "PROTOCOL.md §11", mutant.In((*Link).spend,
		"p.spent = true",
		"p.spent = false")),
	mutant.New("the former challenge proves the next adjacency", "PROTOCOL.md §11", mutant.In((*Link).renew,
		"p.proved, p.spent, p.challenge, p.Session = false, false, l.draw(), 0",
		"p.proved, p.spent, p.Session = false, false, 0")),
	mutant.New("a session is of one challenge", "PROTOCOL.md §11", mutant.In((*Link).believe,
		"Heard{p.Speaker, p.echo, 0}",
		"Heard{p.Speaker, 0, 0}")),
	mutant.New("each end has a session of its own", "PROTOCOL.md §11", mutant.In(session,
		"if a.ID > b.ID {",
		"if a.ID == b.ID {")),
	mutant.New("a new session is no event", "PROTOCOL.md §11", mutant.In((*Link).decide,
		"l.state == Up && state == Up && best.Session != l.best.Session",
		"l.state == Up && state == Up && best.$1 != l.best.$1", Neighbour{}.Speaker)),
	mutant.New("the higher version counts", "PROTOCOL.md §11", mutant.In((*Link).Input,
		"min(m.MaxVersion, l.config.MaxVersion)",
		"max(m.MaxVersion, l.config.MaxVersion)")),
	mutant.New("hellos go on under the former key", "PROTOCOL.md §11", mutant.In((*Link).SetKeys,
		"l.config.Keys, l.config.Send = keys, send",
		"l.config.Keys = keys")),
}

// Wrong extensions.
var _ = []mutant.Mutant{
	mutant.New("extensions come in any order", "PROTOCOL.md §11", mutant.In((*Message).extend,
		"b[0] <= last",
		"b[0] == 0")),
	mutant.New("an unknown extension is the last", "PROTOCOL.md §11", mutant.In((*Message).extend,
		"b = b[2+len(value):]",
		"b = b[len(b):]")),
	mutant.New("extensions have any length together", "PROTOCOL.md §11", mutant.In((*Message).extend,
		"len(b) > maxExtensions",
		"len(b) > 16*maxExtensions")),
}
