// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// Output is a writer that signals when a text has been written.
type Output struct {
	Seen chan struct{} // closed then

	mu   sync.Mutex
	buf  bytes.Buffer
	text string
}

// NewOutput returns a writer that waits for a text; "" for none.
func NewOutput(text string) *Output { return &Output{text: text, Seen: make(chan struct{})} }

// Write implements io.Writer.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.Write(b)
	if o.text != "" && strings.Contains(o.buf.String(), o.text) {
		o.text = ""
		close(o.Seen)
	}
	return len(b), nil
}

// String returns the written text.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Cancel runs a function that writes to say, cancels it when the text has been written,
// and checks that it ends soon with that error.
func Cancel(t *testing.T, text string, run func(ctx context.Context, say *Output) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	say := NewOutput(text)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, say) }()
	select {
	case <-say.Seen:
		cancel()
	case err := <-ended:
		t.Fatalf("ended before it was cancelled: %v\n%s", err, say)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want context.Canceled in it", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("still running 20 s after it was cancelled")
	}
}
