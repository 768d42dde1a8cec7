// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/api"
)

// journalSize is how many events are kept for those who ask later.
const journalSize = 4096

// journal is what has happened to groups and members, for operators. It may be
// used from any goroutine.
type journal struct {
	mu      sync.Mutex
	events  []api.Event // in order of Seq, without gaps
	last    uint64      // Seq of the newest
	changed chan struct{}
}

func newJournal() *journal { return &journal{changed: make(chan struct{})} }

// add numbers e, keeps it, and wakes those who wait.
func (j *journal) add(e api.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	e.Seq, e.Time = j.last, time.Now()
	if len(j.events) >= journalSize {
		j.events = slices.Delete(j.events, 0, journalSize/8) // now and then, not each time
	}
	j.events = append(j.events, e)
	close(j.changed)
	j.changed = make(chan struct{})
}

// after returns the events after seq. If there is none it waits until ctx ends.
// A seq from the future is of an earlier life of the daemon: all are returned.
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
