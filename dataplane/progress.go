// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"context"
	"fmt"
)

// Progress returns nil when each worker has finished a batch after the call. If ctx ends
// earlier, the error names a worker that has not. Any goroutine may call it.
func (p *Plane) Progress(ctx context.Context) error { return p.workers.progress(ctx) }

func (c *workers) progress(ctx context.Context) error {
	for _, w := range c.all {
		passed := make(chan struct{})
		select {
		case w.closures <- func() { close(passed) }:
			w.poller.Wake()
		case <-w.ended:
			return ErrStopped
		case <-ctx.Done():
			return fmt.Errorf("worker %d takes nothing from its mailbox: %w", w.index, ctx.Err())
		}
		select {
		case <-passed:
		case <-w.ended:
			return ErrStopped
		case <-ctx.Done():
			return fmt.Errorf("worker %d has not ended its batch: %w", w.index, ctx.Err())
		}
	}
	return nil
}
