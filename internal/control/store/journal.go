// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
)

// journalSize is the number of events that the journal keeps.
const journalSize = 4096

// Journal is the record of events of groups and members, for operators. It may be used
// from any goroutine.
//
// When it is full, older events of the origin that has the most make room: a holder of a
// key who causes events without end loses its own ones.
type Journal struct {
	mu      sync.Mutex
	events  []journalEntry    // the events in order of Seq; gaps are events that made room
	last    uint64            // Seq of the newest event
	total   map[string]uint64 // events by kind
	changed chan struct{}
}

// journalEntry is an event with its origin.
type journalEntry struct {
	api.Event
	origin origin
}

// origin is who shares the journal's space: the key of the request that caused an event.
// The zero value is the switch itself, and users of the API.
type origin struct {
	requested bool
	key       envelope.KeyID
}

// NewJournal makes an empty journal.
func NewJournal() *Journal {
	return &Journal{changed: make(chan struct{}), total: make(map[string]uint64)}
}

// Add appends an event of the switch itself, or of a user of the API.
func (j *Journal) Add(e api.Event) { j.append(journalEntry{Event: e}) }

// AddBy appends an event that a request of by has caused.
func (j *Journal) AddBy(by envelope.Actor, e api.Event) {
	j.append(journalEntry{e, origin{by.IsValid(), by.Key}})
}

// append numbers e, appends it, and wakes the waiting readers.
func (j *Journal) append(e journalEntry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	j.total[e.Kind]++
	e.Seq, e.Time = j.last, time.Now()
	if len(j.events) >= journalSize {
		j.makeRoom()
	}
	j.events = append(j.events, e)
	close(j.changed)
	j.changed = make(chan struct{})
}

// makeRoom removes the oldest events of the origin that has the most: several at once, to do
// it rarely. The caller holds mu.
func (j *Journal) makeRoom() {
	count := make(map[origin]int)
	var most origin
	for i := range j.events {
		o := j.events[i].origin
		if count[o]++; count[o] > count[most] {
			most = o
		}
	}
	n := min(journalSize/8, (count[most]+1)/2)
	j.events = slices.DeleteFunc(j.events, func(e journalEntry) bool {
		if e.origin != most || n == 0 {
			return false
		}
		n--
		return true
	})
}

// After returns the events after seq. If there is none it waits until ctx ends. A seq
// beyond the last event is from an earlier run of the daemon: all events are returned.
func (j *Journal) After(ctx context.Context, seq uint64) *api.Events {
	for {
		j.mu.Lock()
		page := &api.Events{Last: j.last, Events: []api.Event{}}
		if seq > j.last {
			seq = 0
		}
		first, _ := slices.BinarySearchFunc(j.events, seq+1, func(e journalEntry, seq uint64) int { return cmp.Compare(e.Seq, seq) })
		for i := first; i < len(j.events); i++ {
			page.Events = append(page.Events, j.events[i].Event)
		}
		page.Lost = j.last - seq - uint64(len(page.Events))
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

// Totals returns the number of events by kind.
func (j *Journal) Totals() map[string]uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.total)
}
