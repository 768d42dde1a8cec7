// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/mcast"
)

// The busiest groups are what the live page and the metrics show where there are more than they
// can show. They are chosen from numbers that the workers have at hand; only those that were
// chosen cost the control loop anything.

// trafficHalfLife is the time after which traffic counts half in the choice: a group that pauses
// for some seconds does not give way to another one.
const trafficHalfLife = time.Minute

// ranking is the order of groups by traffic. Any goroutine may use it.
type ranking struct {
	mu     sync.Mutex
	at     time.Time
	groups map[mcast.GroupID]ranked
}

// ranked is what is known of a group since the last choice.
type ranked struct {
	bytes uint64
	score float64 // bytes, with those of earlier times counting less
}

// choose returns the IDs of the first n groups: those that stall first, then by traffic.
func (r *ranking) choose(now time.Time, list []dataplane.GroupTraffic, n int) (ids []mcast.GroupID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	decay := math.Exp2(-float64(now.Sub(r.at)) / float64(trafficHalfLife))
	next := make(map[mcast.GroupID]ranked, len(list))
	for _, t := range list {
		was := r.groups[t.ID]
		if was.bytes > t.Bytes {
			was = ranked{} // another group has the ID now
		}
		next[t.ID] = ranked{t.Bytes, was.score*decay + float64(t.Bytes-was.bytes)}
	}
	r.at, r.groups = now, next
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b dataplane.GroupTraffic) int {
		return cmp.Or(cmp.Compare(stallOf(b), stallOf(a)), cmp.Compare(next[b.ID].score, next[a.ID].score), cmp.Compare(a.ID, b.ID))
	})
	for _, t := range list[:min(n, len(list))] {
		ids = append(ids, t.ID)
	}
	return ids
}

// stallOf returns for how long a group stalls; 0 if it does not.
func stallOf(t dataplane.GroupTraffic) time.Duration {
	if t.Stalled < api.StallTime*time.Second {
		return 0
	}
	return t.Stalled
}

// BusiestGroups returns the n groups that matter most, by address: those that stall, then those with most
// traffic; and how many others there are.
func (e *Engine) BusiestGroups(n int) (list []api.Group, leftOut int, err error) {
	traffic, err := e.plane.Traffic()
	if err != nil {
		return nil, 0, err
	}
	list = []api.Group{}
	for part := range slices.Chunk(e.ranking.choose(time.Now(), traffic, n), showBatch) {
		if !e.control.showGroups(&list, func() (groups []*group) {
			for _, id := range part {
				groups = append(groups, e.control.dir.byID[id])
			}
			return groups
		}) {
			return nil, 0, errStopped
		}
	}
	slices.SortFunc(list, func(a, b api.Group) int { return a.IP.Compare(b.IP) })
	return list, max(0, len(traffic)-n), nil
}
