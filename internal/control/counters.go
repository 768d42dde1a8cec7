// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope"
	"github.com/gleam-rdma/gleam/envelope/cm"
	"github.com/gleam-rdma/gleam/internal/control/tree"
)

// counters are those of the control loop, which alone uses them.
type counters struct {
	envelope [envelope.NumDrops]uint64 // envelopes that had no effect
	unsent   uint64                    // datagrams for hosts without a location
	// outboxFull counts requests that were not served, and messages that were dropped, because
	// of what waits for the state file.
	outboxFull uint64
	cm         [cm.NumDrops]uint64 // messages of RDMA-CM that had no effect

	accepted, unchanged uint64
	rejected            [envelope.NumReasons]uint64 // [0]: for no reason of the protocol
	registration        dataplane.Durations         // the durations of accepted registrations
	install             dataplane.Durations         // the parts of them in directory.Install
	stored              dataplane.Durations         // the times for which what promises something waited for the state file
}

// registrations returns the number of registrations by outcome.
func (c *counters) registrations() map[string]uint64 {
	m := make(map[string]uint64)
	put := func(name string, n uint64) {
		if n > 0 {
			m[name] = n
		}
	}
	put(api.OutcomeAccepted, c.accepted)
	put(api.OutcomeUnchanged, c.unchanged)
	put("failed", c.rejected[0])
	for r := envelope.Reason(1); r < envelope.NumReasons; r++ {
		put(r.String(), c.rejected[r])
	}
	return m
}

// noteAccepted counts a registration that was accepted at time now.
func (c *counters) noteAccepted(e *envelope.Event, now time.Duration) {
	if c.accepted++; e.Began != 0 {
		c.registration.Add(now - e.Began)
	}
}

// The reasons under which the control loop counts messages.
var (
	envelopeReasons = dataplane.NewReasonTable("envelope_", envelope.NumDrops)
	cmReasons       = dataplane.NewReasonTable("cm_", cm.NumDrops)
)

// outboxFull is the reason of counters.outboxFull.
var outboxFull = dataplane.CountedReason{
	Name: "outbox_full",
	Text: "a request that was not served, or an answer that was not sent, as many others wait until the state file has what they say, or this one has for 30 s: its disk is slow, or it cannot be written",
}

// addTo adds the counts to those of the workers, by name.
func (c *counters) addTo(normal, drops map[string]uint64) {
	envelopeReasons.AddTo(normal, drops, c.envelope[:])
	cmReasons.AddTo(normal, drops, c.cm[:])
	if c.unsent > 0 {
		drops[dataplane.NoLocation] += c.unsent
	}
	if c.outboxFull > 0 {
		drops[outboxFull.Name] = c.outboxFull
	}
}

// Reasons returns all reasons under which api.Stats counts packets, in a fixed order:
// those of the data plane, of envelopes, of RDMA-CM, and of hellos.
func Reasons() []dataplane.CountedReason {
	return slices.Concat(dataplane.Reasons(), envelopeReasons[1:], cmReasons[1:], tree.Reasons[1:], []dataplane.CountedReason{outboxFull})
}
