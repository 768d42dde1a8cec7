// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// Progress is reported of a control loop that iterates, and not of one that stands still.
func TestProgressOfTheControlLoop(t *testing.T) {
	f := newFakeSwitch(t, 2, 1)
	if err := f.Progress(t.Context()); err != nil {
		t.Errorf("a switch that runs: %v", err)
	}
	held, let := make(chan struct{}), make(chan struct{})
	go f.control.do(func() { close(held); <-let })
	<-held
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := f.Progress(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "control loop") {
		t.Errorf("a control loop that stands still: %v", err)
	}
	close(let)
	if err := f.Progress(t.Context()); err != nil {
		t.Errorf("when it goes on: %v", err)
	}
}
