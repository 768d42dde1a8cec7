// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import "time"

// clock is a worker's time: now changes only between two batches and in closures, so that
// all packets of a batch have the same time. All workers count from the same start.
type clock struct {
	start       time.Time
	now         time.Duration // the time passed since start
	batchNumber uint64        // counts the batches: frames that were staged in the current one can still be changed
}

// readClock returns the time since start and sets now to it, so that the core's time
// does not go back in the next batch.
func (c *clock) readClock() time.Duration {
	c.now = c.elapsed()
	return c.now
}

// elapsed returns the time since start.
func (c *clock) elapsed() time.Duration { return time.Since(c.start) }
