// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"fmt"
	"net/netip"
)

// calls are the requests of other goroutines, which the control loop serves.
type calls struct {
	closures     chan func()               // requests that change something
	reads        chan reading              // requests that change nothing
	ended        chan struct{}             // closed when the loop has ended
	localWaiters map[netip.Addr]chan error // channels for the outcomes of local registrations, by group; of the loop
}

func newCalls() calls {
	return calls{closures: make(chan func()), reads: make(chan reading), ended: make(chan struct{}), localWaiters: make(map[netip.Addr]chan error)}
}

// do runs f on the control loop and returns when it has run; it returns false if the loop
// has ended.
func (x *calls) do(f func()) bool {
	done := make(chan struct{})
	select {
	case x.closures <- func() { f(); close(done) }:
		<-done
		return true
	case <-x.ended:
		return false
	}
}

// read runs f, which changes nothing, on the control loop, and returns when it has run; it returns
// false if the loop has ended.
func (x *calls) read(f func()) bool {
	return x.readGroups(func() []*group { return nil }, func([]groupStatus) { f() })
}

// readGroups is read for what needs the state of groups.
func (x *calls) readGroups(groups func() []*group, f func([]groupStatus)) bool {
	done := make(chan struct{})
	select {
	case x.reads <- reading{groups, func(list []groupStatus) { f(list); close(done) }}:
		<-done
		return true
	case <-x.ended:
		return false
	}
}

// progress returns nil when the loop has begun an iteration after the call.
func (x *calls) progress(ctx context.Context) error {
	passed := make(chan struct{})
	select {
	case x.closures <- func() { close(passed) }: // taken between two iterations
	case <-x.ended:
		return errStopped
	case <-ctx.Done():
		return fmt.Errorf("the control loop has not ended its iteration: %w", ctx.Err())
	}
	select {
	case <-passed:
		return nil
	case <-x.ended:
		return errStopped
	}
}

// Progress returns nil when, after the call, each worker has finished a batch and the control
// loop has begun an iteration. If ctx ends earlier, the error names the worker or the control
// loop that has not.
func (e *Engine) Progress(ctx context.Context) error {
	if err := e.plane.Progress(ctx); err != nil {
		return err
	}
	return e.control.progress(ctx)
}
