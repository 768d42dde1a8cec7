// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/control/locate"
)

// watcher is the part of locate.Watcher that the control loop uses.
type watcher interface {
	Resyncs() uint64
	Dead() []string
}

// stats returns the API's view of the control loop.
func (c *control) stats() api.Control {
	s := api.Control{Iterations: c.loop.iterations, LongestIteration: c.loop.longest.Seconds(), Lookups: c.kernel.lookups.Total(), Hosts: c.dir.hosts.Len()}
	if c.kernel.watcher != nil {
		s.Resyncs, s.NotWatched = c.kernel.watcher.Resyncs(), c.kernel.watcher.Dead()
	}
	if c.keeper.Keeper != nil {
		x := c.keeper.Status()
		s.State = &api.StateFile{Writes: x.Writes, Errors: x.Errors, Waiting: x.Waiting || len(c.connections.unkept.groups) > 0}
		if x.Err != nil {
			s.State.Failing = x.Err.Error()
		}
	}
	return s
}

// watchInterval is the least time between two log lines about one watch, except for its
// recovery.
const watchInterval = 10 * time.Second

// watchReports returns a function that reports the state of the netlink watches to the
// operator.
func (e *Engine) watchReports() func(locate.Report) {
	var mu sync.Mutex
	reportedAt := make(map[string]time.Time)
	return func(r locate.Report) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if r.Err != nil && now.Sub(reportedAt[r.What]) < watchInterval {
			return
		}
		reportedAt[r.What] = now
		switch {
		case r.Lost > 0:
			e.notify(true, "netlink messages were lost: everything is looked up again", "watch", r.What, "times", r.Lost, "error", r.Err)
		case r.Err != nil:
			e.notify(true, "a netlink watch has failed: everything is looked up each second until there is another one", "watch", r.What, "error", r.Err)
		default:
			delete(reportedAt, r.What)
			e.notify(false, "a netlink watch works again", "watch", r.What)
		}
	}
}
