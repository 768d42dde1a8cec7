// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/gleam-rdma/gleam/dataplane"
)

// A host that comes back with another MAC address, behind a link that has stayed up, is in the
// kernel's neighbour table with its old one until the kernel looks after it, which takes 10 to 60 s:
// the entry is stale, and nothing tells the kernel so. Two events tell the switch: a host that does
// not answer where the kernel has it, when a registration asks, and an authentic request from
// elsewhere. The switch then has the kernel ask all hosts of the link once more. Who answers is
// asked to confirm it as ever: a stranger gains nothing that an ARP packet of his own would not.
// The entries of members are pinned, and stay.

const (
	// reresolveAfter is the number of requests without an answer after which a host is resolved anew:
	// the third one is sent 200 ms after the first.
	reresolveAfter = 3
	// reresolveInterval is the least time between two times of one host.
	reresolveInterval = time.Second
	// maxReresolved bounds the hosts that are resolved anew because of requests from elsewhere, each second.
	maxReresolved = 64
)

// reresolve has the kernel ask all hosts for h's address, with the next lookup.
func (c *control) reresolve(h *host) {
	now := c.now()
	if h.isPinned() || !h.location.Known() || h.reresolvedAt > 0 && now-h.reresolvedAt < reresolveInterval {
		return
	}
	h.reresolvedAt, h.reresolve = now, true
	c.dir.hosts.enqueue(h)
}

// askedFromElsewhere is told of an authentic request of h from the given origin, whose answer goes
// where the kernel has h.
func (c *control) askedFromElsewhere(h *host, from dataplane.Origin) {
	if at := c.dir.originOf(&h.location); at.Port >= 0 && (at.Port != from.Port || at.MAC != from.MAC) && c.moves.reresolvePolicer.Allow(c.now()) {
		c.reresolve(h)
	}
}
