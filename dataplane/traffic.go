// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"time"

	"github.com/gleam-rdma/gleam/mcast"
)

// Bounds of what a worker reads of its groups between two batches of packets.
const (
	trafficBatch = 64   // groups
	trafficScan  = 2048 // entries of its table
)

// GroupTraffic is what the busiest groups are chosen by.
type GroupTraffic struct {
	ID      mcast.GroupID
	Bytes   uint64        // payload of the data that was forwarded since the group was registered
	Stalled time.Duration // the time for which its ACK has not advanced, though packets are outstanding
}

// Traffic reads the traffic of all groups, a bounded number between two batches of packets. Any
// goroutine may call it, but the control loop, which has more to do.
func (p *Plane) Traffic() (list []GroupTraffic, err error) {
	for _, w := range p.workers.all {
		for from := 0; from < len(w.groups); {
			if !w.do(func() { list, from = w.traffic(list, from) }) {
				return nil, ErrStopped
			}
		}
	}
	return list, nil
}

// traffic appends the traffic of groups from entry from on, and returns where to go on.
func (w *worker) traffic(list []GroupTraffic, from int) ([]GroupTraffic, int) {
	room := trafficBatch
	end := min(from+trafficScan, len(w.groups))
	for ; from < end && room > 0; from++ {
		if !w.groups[from].ip.IsValid() {
			continue
		}
		m := &w.meters.groups[from]
		list = append(list, GroupTraffic{ID: mcast.GroupID(from), Bytes: m.dataBytes, Stalled: m.stalledFor(w.now)})
		room--
	}
	return list, from
}
