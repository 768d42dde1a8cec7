// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"net/netip"
	"slices"

	"github.com/gleam-rdma/gleam/config"
)

// Options of ports, limits and group prefixes, that change while the workers run.

// SetOptions gives port pi the options of c: rate, queue, ECN and VLAN.
func (p *Plane) SetOptions(pi int, c *config.Port) error {
	if !p.workers.do(func(w *worker) {
		w.disturbFast()
		x := w.ports[pi]
		x.vlan, x.ownECN, x.queue.maxBytes = uint16(c.VLAN), c.HasOwnECN(), c.Queue
		if x.remoteTX == nil {
			x.ecn = newMarker(c.ECN, x.ecn.rand)
		}
	}) {
		return ErrStopped
	}
	return p.SetRate(pi, int64(c.Rate)) // with the longest wait in the queue
}

// SetLimits replaces the limits of packets per second of every port. Each of the given number
// of ports gets an equal share of the frames that may wait; a port that has more in its
// queue sends these first.
func (p *Plane) SetLimits(l *config.Limits, ports int) error {
	if !p.workers.do(func(w *worker) {
		for _, x := range w.ports {
			x.policers = newPortPolicers(l)
			if x.remoteTX == nil {
				room := len(x.queue.ring) - 2*reservedReplyFrames
				x.queue.maxFrames = min(room, queueFrames(p.cfg)*len(p.cfg.Ports)/max(1, ports))
			}
		}
	}) {
		return ErrStopped
	}
	return nil
}

// SetGroupPrefixes replaces the group prefixes: frames to the others are the kernel's from
// then on. After an error the former ones count.
func (p *Plane) SetGroupPrefixes(list []netip.Prefix) error {
	if p.steering != nil {
		if err := p.steering.SetPrefixes(list); err != nil {
			return err
		}
	}
	list = slices.Clone(list)
	if !p.workers.do(func(w *worker) { w.prefixes = list }) {
		return ErrStopped
	}
	return nil
}
