// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to meet floods of envelopes.
var _ = []mutant.Mutant{
	mutant.New("there is a lookup for a receiver that cannot be waited for", "Flood", mutant.In((*control).transmit,
		"(h == nil || c.plane.PortIndex(h.At().Ifindex) < 0) && !c.departures.parked.hasRoom(m.Port)",
		"h == nil && h != nil")),
	mutant.New("the answers to one port's envelopes take all places", "Flood", mutant.In((*parkedEnvelopes).hasRoom,
		"port < 0 || n < maxParkedPerPort",
		"port < 0 || n < 1000")),
	mutant.New("an answer is not told from the switch's own messages", "Flood", mutant.In((*control).send,
		"Port: c.departures.asker.from.Port",
		"Port: -1")),
	mutant.New("each request has an iteration of the control loop", "Flood", mutant.In((*control).serveRequests,
		"c.loop.requestPolicer.Allow(c.loop.start)\n",
		"")),
	mutant.New("a turn serves one request", "Flood", mutant.In((*control).serveRequests,
		"c.now()-c.loop.start > maxRequestTime",
		"true")),
	mutant.New("requests that waited for a turn wait for another event", "Flood", mutant.In((*control).serveDeferred,
		"c.loop.requestPolicer.WaitFor(c.loop.start) > 0",
		"true")),
	mutant.New("each datagram waits for a batch of its worker", "Places", mutant.In((*control).sendBy,
		"if len(c.departures.datagrams) == maxDatagrams {",
		"if len(c.departures.datagrams) > 0 {")),
	mutant.New("more datagrams wait than a batch of a worker has", "Places", mutant.In((*control).sendBy,
		"if len(c.departures.datagrams) == maxDatagrams {",
		"if len(c.departures.datagrams) < 0 {")),
}
