// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"fmt"
)

// Progress returns nil when, after the call, each worker has finished a batch and the control
// loop has begun an iteration. If ctx ends earlier, the error names the worker or the control
// loop that has not.
func (e *Engine) Progress(ctx context.Context) error {
	if err := e.plane.Progress(ctx); err != nil {
		return err
	}
	return e.control.progress(ctx)
}

func (c *control) progress(ctx context.Context) error {
	passed := make(chan struct{})
	select {
	case c.closures <- func() { close(passed) }: // taken between two iterations
	case <-c.ended:
		return errStopped
	case <-ctx.Done():
		return fmt.Errorf("the control loop has not ended its iteration: %w", ctx.Err())
	}
	select {
	case <-passed:
		return nil
	case <-c.ended:
		return errStopped
	}
}
