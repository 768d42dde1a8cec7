// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"math"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
)

// Keeper is the state file: what is kept over a restart. A nil Keeper is that of a switch which keeps
// nothing, and has no file to append to.
type Keeper struct {
	*statefile.File
	found   *statefile.Found
	durable chan struct{} // rung when more is durable, or nothing can be stored
	failing bool          // the journal says that the file cannot be written
}

// OpenKeeper opens the state file at path of a process that becomes user uid. interval is the least time
// between two writes.
func OpenKeeper(path string, uid int, interval time.Duration, notify func(warn bool, msg string, kv ...any)) (*Keeper, error) {
	k := &Keeper{durable: make(chan struct{}, 1)}
	var err error
	k.File, k.found, err = statefile.Open(path, statefile.Options{
		Interval: interval, Owner: uid,
		Report: func(err error) {
			if err != nil {
				notify(true, "the state file cannot be written: groups go on, no members are taken, and what waits for the file is not answered", "error", err)
			} else {
				notify(false, "the state file is written again: what has waited for it is answered")
			}
		},
		Stored: k.Ring,
	})
	if err != nil {
		return nil, err
	}
	switch f := k.found; {
	case f.Damaged != nil:
		notify(true, "the groups of before the restart are lost", "error", f.Damaged, "file", f.DamagedFile)
	case f.Torn > 0:
		notify(false, "the last change before the restart is lost, as its writing was interrupted", "bytes", f.Torn)
	}
	return k, nil
}

// Close writes what waits, and closes the file.
func (k *Keeper) Close() error {
	if k == nil {
		return nil
	}
	return k.File.Close()
}

// Bell rings when more is durable, or nothing can be stored.
func (k *Keeper) Bell() <-chan struct{} {
	if k == nil {
		return nil
	}
	return k.durable
}

// Ring rings the bell.
func (k *Keeper) Ring() {
	select {
	case k.durable <- struct{}{}:
	default:
	}
}

// EpochBase returns the newest epoch that groups without a record may have had, and has it stored. It
// grows also where the clock has gone back.
func (k *Keeper) EpochBase() uint64 {
	base := uint64(time.Now().UnixMilli())
	if k != nil {
		s := k.found.State.Switch
		base = max(base, s.EpochBase+1)
		s.EpochBase = base
		var c statefile.Change
		c.PutSwitch(s)
		k.Append(&c)
	}
	return base
}

// Before returns the state of before the start, until ForgetBefore.
func (k *Keeper) Before() *statefile.State { return k.found.State }

// ForgetBefore frees the state of before the start.
func (k *Keeper) ForgetBefore() { k.found = nil }

// Stored returns the number of the newest change that is durable. Without a file nothing waits for one.
func (k *Keeper) Stored() uint64 {
	if k == nil {
		return math.MaxUint64
	}
	return k.File.Stored()
}

// Failing reports whether the file cannot be written.
func (k *Keeper) Failing() bool { return k != nil && k.File.Failing() }

// Look returns what is durable, and whether the file cannot be written; if that has changed since the
// last look, news is the event for the journal.
func (k *Keeper) Look() (stored uint64, failing bool, news *api.Event) {
	stored, failure := k.File.Stored(), k.Status().Err
	if failing = failure != nil; failing != k.failing {
		k.failing = failing
		news = &api.Event{Kind: api.EventStorage, Reason: "the state file is written again"}
		if failing {
			news.Reason = failure.Error()
		}
	}
	return stored, failing, news
}

// StartedEvent is the first event of the journal: gleamd has started. An operator who looks for the end
// of a group finds by it that a restart was the cause, and whether groups outlive one.
func (k *Keeper) StartedEvent(build api.Version) api.Event {
	return api.Event{Kind: api.EventStarted, Reason: fmt.Sprintf("gleamd %s: %s", build.Text(), k.beforeText())}
}

// beforeText says what is known of the time before the start.
func (k *Keeper) beforeText() string {
	switch {
	case k == nil:
		return "the configuration has no key state, so groups end with gleamd"
	case k.found.Damaged != nil:
		return fmt.Sprintf("the state file was damaged, so groups of before are lost; it is %s now", k.found.DamagedFile)
	case k.found.New:
		return "there was no state file"
	}
	return fmt.Sprintf("the state file has groups of before: %d", len(k.found.State.Groups))
}
