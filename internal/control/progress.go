// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "context"

// Progress returns nil when, after the call, each worker has finished a batch and the control
// loop has begun an iteration. If ctx ends earlier, the error names the worker or the control
// loop that has not.
func (e *Engine) Progress(ctx context.Context) error {
	if err := e.plane.Progress(ctx); err != nil {
		return err
	}
	return e.control.progress(ctx)
}
