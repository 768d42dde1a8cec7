// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"context"
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab/testbed"
)

// repairStore is the cost of a group's repairs at the switch during a measurement.
//
// The switch reports the maximum of a group's store since the group was made. If that
// rose during the measurement, it is peak; otherwise peak is the largest value polled
// every watchStep, which can miss a short rise.
type repairStore struct {
	peak        int64  // bytes of packet memory
	resent      uint64 // packets
	notRetained uint64 // packets for which there was no room
	naks        uint64 // NAKs answered
	probes      uint64 // probes of silent receivers
	fast        uint64 // packets replicated by XDP
}

const watchStep = 10 * time.Millisecond

// storeWatcher polls a group's status while a measurement runs. nil: there is no group.
type storeWatcher struct {
	session *endpoints
	client  *connection
	before  api.Repair
	fast    uint64 // the count at the beginning
	cancel  context.CancelFunc
	done    chan struct{} // closed when it has stopped
	peak    int64         // the most bytes; valid after done
}

// watch starts to watch a connection by a group.
func (s *endpoints) watch(c *connection) (*storeWatcher, error) {
	if c.group == nil {
		return nil, nil
	}
	w := &storeWatcher{session: s, client: c, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(s.ctx)
	w.cancel = cancel
	var err error
	if w.before, err = w.poll(ctx); err != nil {
		cancel()
		return nil, err
	}
	if w.fast, err = testbed.FastPackets(ctx, s.testbed.Client); err != nil {
		cancel()
		return nil, err
	}
	go w.run(ctx)
	return w, nil
}

func (w *storeWatcher) poll(ctx context.Context) (api.Repair, error) {
	g, err := w.session.testbed.Client.Group(ctx, w.client.group.Info().IP)
	switch {
	case err != nil:
		return api.Repair{}, fmt.Errorf("ask the switch about the group: %w", err)
	case g.Repair == nil: // registered without
		return api.Repair{}, nil
	}
	return *g.Repair, nil
}

func (w *storeWatcher) run(ctx context.Context) {
	defer close(w.done)
	tick := time.NewTicker(watchStep)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if r, err := w.poll(ctx); err == nil { // end reports an error that lasts
			w.peak = max(w.peak, r.Bytes)
		}
	}
}

// stop ends the watching, if end has not.
func (w *storeWatcher) stop() {
	if w != nil {
		w.cancel()
		<-w.done
	}
}

// end stops and returns the result.
func (w *storeWatcher) end() (repairStore, error) {
	if w == nil {
		return repairStore{}, nil
	}
	w.stop()
	after, err := w.poll(w.session.ctx)
	if err != nil {
		return repairStore{}, err
	}
	fast, err := testbed.FastPackets(w.session.ctx, w.session.testbed.Client)
	if err != nil {
		return repairStore{}, err
	}
	r := repairStore{fast: fast - w.fast, peak: w.peak, resent: after.Copies - w.before.Copies, notRetained: after.NotRetained - w.before.NotRetained,
		naks: after.NAKs - w.before.NAKs, probes: after.Probes - w.before.Probes}
	if after.MaxRetainedBytes > w.before.MaxRetainedBytes {
		r.peak = after.MaxRetainedBytes
	}
	return r, nil
}
