// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab"
)

// Progress is reported of workers that end their batches, and an error names the one that
// does not; afterwards there is progress again. A call that gave up leaves nothing behind.
func TestProgress(t *testing.T) {
	s := newFakeStar(t, lab.StarConfig{Hosts: 2}, fakeConfig(t, 2, "umem: {frames: 4096}\nworker: {cpu: [-1, -1]}\n", ""))
	ended := false
	if _, err := s.workers.run(func() {
		if err := s.workers.progress(t.Context()); err != nil {
			t.Errorf("two workers that run: %v", err)
		}
		held, let := make(chan struct{}), make(chan struct{})
		w := s.workers.all[1]
		w.put(func() { close(held); <-let })
		<-held
		named := false                  // on a busy machine the other worker may not have ended its batch either
		for range 2 * cap(w.closures) { // more than the mailbox holds
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			err := s.workers.progress(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("a worker that stands still: %v", err)
			}
			named = named || strings.Contains(err.Error(), "worker 1")
		}
		if !named {
			t.Error("no error names the worker that stands still")
		}
		close(let)
		if err := s.workers.progress(t.Context()); err != nil {
			t.Errorf("when it goes on: %v", err)
		}
		ended = true
	}); err != nil || !ended {
		t.Fatal(err)
	}
	if err := s.workers.progress(t.Context()); !errors.Is(err, ErrStopped) {
		t.Errorf("workers that have ended: %v", err)
	}
}
