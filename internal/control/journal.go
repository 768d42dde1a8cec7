// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/api"
)

// journalSize is the number of events that the journal keeps.
const journalSize = 4096

// journal is the record of events of groups and members, for operators. It may be used
// from any goroutine.
type journal struct {
	mu      sync.Mutex
	events  []api.Event       // in order of Seq, without gaps
	last    uint64            // Seq of the newest event
	total   map[string]uint64 // events by kind
	changed chan struct{}
}

func newJournal() *journal {
	return &journal{changed: make(chan struct{}), total: make(map[string]uint64)}
}

// add numbers e, appends it, and wakes the waiting readers.
func (j *journal) add(e api.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	j.total[e.Kind]++
	e.Seq, e.Time = j.last, time.Now()
	if len(j.events) >= journalSize {
		j.events = slices.Delete(j.events, 0, journalSize/8) // several at once, to do it rarely
	}
	j.events = append(j.events, e)
	close(j.changed)
	j.changed = make(chan struct{})
}

// after returns the events after seq. If there is none it waits until ctx ends. A seq
// beyond the last event is from an earlier run of the daemon: all events are returned.
func (j *journal) after(ctx context.Context, seq uint64) *api.Events {
	for {
		j.mu.Lock()
		page := &api.Events{Last: j.last, Events: []api.Event{}}
		if seq > j.last {
			seq = 0
		}
		if n := len(j.events); n > 0 {
			first := j.events[0].Seq
			if seq+1 < first {
				page.Lost = first - seq - 1
			}
			page.Events = slices.Clone(j.events[min(uint64(n), max(seq+1, first)-first):])
		}
		changed := j.changed
		j.mu.Unlock()
		if len(page.Events) > 0 || ctx.Err() != nil {
			return page
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return page
		}
	}
}

// totals returns the number of events by kind.
func (j *journal) totals() map[string]uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.total)
}
