// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"context"
	"time"

	"github.com/gleam-rdma/gleam/api"
)

// Trace implements api.Tracer: it passes Traced, and lasts until StopTrace unless the trace's count
// is reached before.
func (b *Backend) Trace(q *api.Trace) (func(context.Context, func(*api.TraceLine, bool) error) error, error) {
	if b.Fail != nil {
		return nil, b.Fail
	}
	stop := make(chan struct{}, 1)
	b.mu.Lock()
	b.stopTrace = stop
	b.mu.Unlock()
	return func(ctx context.Context, emit func(*api.TraceLine, bool) error) error {
		start := api.TraceStart{Time: time.Unix(1.8e9, 0).UTC(), Ports: []string{"eth1", "eth2"}, Snap: q.Snap, Notes: append([]string{}, b.TraceNotes...)}
		if err := emit(&api.TraceLine{Start: &start}, false); err != nil {
			return err
		}
		end := api.TraceEnd{Reason: "count", Costs: b.TraceCosts}
		for i := range b.Traced {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(b.TracePause):
			}
			if err := emit(&api.TraceLine{Packet: &b.Traced[i]}, b.TracePause == 0 && i+1 < len(b.Traced)); err != nil {
				return err
			}
			end.Packets++
			if int(end.Packets) == q.Count {
				return emit(&api.TraceLine{End: &end}, false)
			}
		}
		select {
		case <-stop:
			end.Reason, end.Lost = "stopped", 3
			return emit(&api.TraceLine{End: &end}, false)
		case <-ctx.Done():
			return ctx.Err()
		}
	}, nil
}

// StopTrace implements api.Tracer.
func (b *Backend) StopTrace() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopTrace == nil {
		return &api.Error{Message: "no trace runs", Reason: api.ReasonNoTrace}
	}
	b.stopTrace <- struct{}{}
	b.stopTrace = nil
	return nil
}
