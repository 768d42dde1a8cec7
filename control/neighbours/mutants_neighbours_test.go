// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package neighbours

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to hear hellos, and to keep the table of neighbours.
var _ = []mutant.Mutant{
	mutant.NewForRoot("a tagged hello is heard", "PROTOCOL.md §11", mutant.In(helloFilter,
		"Val: unix.PACKET_MULTICAST, SkipTrue: 5",
		"Val: unix.PACKET_MULTICAST, SkipTrue: 0")),
	mutant.NewForRoot("a hello to any address is heard", "PROTOCOL.md §11", mutant.In(helloFilter,
		"Val: uint32(binary.BigEndian.Uint16(d[4:])), SkipTrue: 1",
		"Val: uint32(binary.BigEndian.Uint16(d[4:])), SkipTrue: 0")),
	mutant.NewForRoot("a port brings any number of hellos", "PROTOCOL.md §11", mutant.In((*link).receive,
		"l.policer.Allow(now)",
		"")),
	mutant.NewForRoot("a hello without effect is not counted", "Counters", mutant.In((*link).receive,
		"l.state.Drops[l.out.Drop]++",
		"")),
	mutant.NewForRoot("the operator is told of each hello without effect", "Routes", mutant.In((*link).warn,
		"now-l.warned[d] < warnInterval",
		"now-l.warned[d] < 0")),
	mutant.NewForRoot("hellos do not know of a link that is down", "PROTOCOL.md §11", mutant.In((*link).setLink,
		"l.machine.SetLink(now, up, &l.out)",
		"l.machine.SetLink(now, up || !up, &l.out)")),
	mutant.NewForRoot("neighbours do not learn a new MTU", "PROTOCOL.md §11", mutant.In((*link).setLink,
		"l.MTU = mtu",
		"l.MTU = l.MTU")),
	mutant.NewForRoot("a change of a link rings nobody", "Routes", mutant.In((*link).handle,
		"l.state.Neighbour, _ = l.machine.Neighbour()\n\t\tl.changed()",
		"l.state.Neighbour, _ = l.machine.Neighbour()")),
	mutant.New("the ID of the machine is that of the switch", "Routes", mutant.In(ID,
		"hmac.New(sha256.New, b)",
		"hmac.New(sha256.New, b[:0])")),

	mutant.New("a session that has begun between two looks is the last one", "Routes", mutant.In((*Change).Ended,
		"c.Was.Session != c.Is.Session",
		"c.Was.Session != c.Was.Session")),
	mutant.New("a neighbour that is down is up", "Routes", mutant.In((*Table).Update,
		"a.Up, a.Since, a.Reason = false, now, l.Lost",
		"a.Since, a.Reason = now, l.Lost")),
	mutant.New("a port keeps its number for another switch", "Routes", mutant.In((*Table).find,
		"return a.Port == port && a.ID == id",
		"return a.Port == port && a.ID != 0 && id != 0")),
	mutant.New("a switch has one number at all ports", "Routes", mutant.In((*Table).find,
		"return a.Port == port && a.ID == id",
		"return a.Port >= 0 && port >= 0 && a.ID == id")),
	mutant.New("neighbours that are gone fill the memory", "Routes", mutant.In((*Table).find,
		"len(down) >= maxDown",
		"len(down) >= 1000*maxDown")),
	mutant.New("a number is given twice", "Routes", mutant.In((*Table).find,
		"t.last++",
		"t.last = 1")),
}
