// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/dataplane/iface"
)

// Not every interface takes the frames that XDP redirects to it, and some drop them
// silently. So what becomes of the copies for each port is looked at while the switch runs,
// and a port that gets none, or loses most, is taken off the fast path: fastpath.Target
// decides. No packet waits for it.

// fastTargetInterval is the time between two looks at the ports.
const fastTargetInterval = 100 * time.Millisecond

// fastTargets are the ports, as the fast path may use them.
type fastTargets struct {
	redirects   *iface.Redirects                    // nil: the kernel does not know
	transmitted func(port int) fastpath.Transmitted // the counts of fastpath.Maps
	changed     func(pi int)                        // a port may be used now, or may not
	notify      Notify

	required bool // true: each port is to be used

	mu    sync.Mutex
	ports []fastTarget // ports by slot
}

// fastTarget is one port.
type fastTarget struct {
	barred atomic.Bool   // true: the port is not used; any goroutine reads it
	skips  atomic.Uint64 // times that a leg's gate was open, and no copy came to it; workers count

	name, driver string
	ifindex      int // 0: the slot has no interface, or one in generic mode
	target       fastpath.Target
}

// newFastTargets makes the state of a number of ports that have no interface yet. It is
// called in the network namespace of the ports.
func newFastTargets(maps *fastpath.Maps, ports int, required bool, notify Notify) *fastTargets {
	f := &fastTargets{transmitted: maps.Transmitted, changed: func(int) {}, required: required, notify: notify, ports: make([]fastTarget, ports)}
	if err := maps.TransmitError(); err != nil {
		notify(true, "copies that drivers lose on the fast path are not counted", "error", err)
	}
	var err error
	if f.redirects, err = iface.OpenRedirects(); err != nil {
		notify(false, "the kernel does not say which ports take redirected frames", "error", err)
	}
	return f
}

// setPort gives a slot an interface, or none. What was known of another one is forgotten. One in generic mode is not
// looked at: that it takes no redirected frames is no reason of its own. A nil f has no ports.
func (f *fastTargets) setPort(pi int, p *portIdentity) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	x := &f.ports[pi]
	x.name, x.driver, x.ifindex, x.target = p.name, p.driver, p.ifindex, fastpath.Target{}
	if !p.native {
		x.ifindex = 0
	}
	x.barred.Store(false)
}

// run looks at the ports until done is closed.
func (f *fastTargets) run(done <-chan struct{}, now func() time.Duration) {
	tick := time.NewTicker(fastTargetInterval)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			f.look(now())
		}
	}
}

// look takes a look at every port.
func (f *fastTargets) look(now time.Duration) {
	f.mu.Lock()
	var changed []int
	for pi := range f.ports {
		if x := &f.ports[pi]; x.ifindex != 0 && f.lookAt(pi, x, now) {
			changed = append(changed, pi)
		}
	}
	f.mu.Unlock()
	for _, pi := range changed {
		f.changed(pi)
	}
}

// lookAt takes a look at port pi, and reports whether it may be used has changed.
func (f *fastTargets) lookAt(pi int, x *fastTarget, now time.Duration) bool {
	report := fastpath.TargetReport{Transmitted: f.transmitted(pi), Skipped: x.skips.Load()}
	if f.redirects != nil {
		if taken, err := f.redirects.Taken(x.ifindex); err == nil { // else the interface is gone
			report.Support = fastpath.TakesNone
			if taken {
				report.Support = fastpath.Takes
			}
		}
	}
	if !x.target.Look(now, &report) {
		return false
	}
	barred := !x.target.Usable()
	if barred {
		reason, remedy := x.target.Why(x.driver)
		kv := []any{"port", x.name, "reason", reason, "remedy", remedy}
		_, since, until := x.target.State()
		loses := until > since
		if loses {
			kv = append(kv, "tried_again_in", (until - since).String())
		}
		f.notify(loses || f.required, "port is off the fast path", kv...)
	} else if x.barred.Load() {
		state, _, _ := x.target.State()
		f.notify(false, "port is on the fast path again", "port", x.name, "state", state)
	}
	return x.barred.Swap(barred) != barred
}

// isBarred reports whether port pi is off the fast path.
func (f *fastTargets) isBarred(pi int) bool { return f.ports[pi].barred.Load() }

// skipped notes that the gate of a leg behind port pi was open, and no copy came to it.
func (f *fastTargets) skipped(pi int) { f.ports[pi].skips.Add(1) }

// why returns why port pi is off the fast path, and what helps; empty if it is not.
func (f *fastTargets) why(pi int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := &f.ports[pi]
	reason, remedy := x.target.Why(x.driver)
	if reason == "" {
		return ""
	}
	return fmt.Sprintf("%s: %s", reason, remedy)
}

// whyBarred is why groups with receivers behind port pi, which is barred, are off the fast path.
func (f *fastTargets) whyBarred(pi int) Why {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := &f.ports[pi]
	word := fastRedirects
	if state, _, _ := x.target.State(); state == fastpath.TargetLossy {
		word = fastLosses
	}
	reason, remedy := x.target.Why(x.driver)
	return Why{Word: word, detail: fmt.Sprintf("port %s: %s", x.name, cmp.Or(reason, "it is tried again")), helps: remedy}
}

func (f *fastTargets) close() {
	if f.redirects != nil {
		f.redirects.Close()
	}
}
