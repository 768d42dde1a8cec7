// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// claim does what the program does first with the next packet of a group that has the fast
// path, and nothing of the rest: the packet is not stored, and no copy leaves.
func (w *worker) claim(f *fastGroup) bool {
	if f == nil || f.step != fastGranted {
		return false
	}
	st, limit := f.ring.State(), w.core.Group(f.id).OffloadLimit()
	if !st.Hi.Less(limit) {
		return false
	}
	if st = f.ring.Revoke(); st.Hi == limit {
		f.ring.Grant(st.Hi, st.Open, limit)
		return false
	}
	f.ring.Grant(st.Hi.Next(), false, limit)
	return true
}

// A packet that is claimed and never stored does not hold up the worker, and with it other groups, for more than some ms: it is counted, the
// group is taken back, and the source sends the packet again. Those behind it are reported or
// dropped without another wait.
func TestFastNeverStored(t *testing.T) {
	x := newFastLab(t, fastLabConfig{hosts: 3})
	x.steady(0, func() { x.send(0, 5, 10000, x.all(0)...) })
	w := x.plane.workers.all[0]
	var said []string
	w.do(func() {
		w.fast.shared.notify = func(warn bool, msg string, kv ...any) { said = append(said, msg) }
	})
	machine := labtest.Watch()
	while(func(stop <-chan struct{}) {
		for tick := time.NewTicker(time.Millisecond); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			claimed, reason := false, Why{}
			w.do(func() {
				f := w.fast.of(0)
				if claimed = w.claim(f); !claimed {
					return
				}
				w.claim(f)
				began := w.elapsed()
				w.reportGroup(f)
				if took := w.elapsed() - began; took < fastStore || took >= 10*fastStore {
					machine.Timing(t, "the worker waited %v for packets that are never stored", took)
				}
				if reason = f.why; f.step == fastGranted {
					t.Error("the group stays on the fast path")
				}
			})
			if claimed {
				if reason != whyNotStored {
					t.Errorf("the group is not on the fast path because %q", reason.Text())
				}
				return
			}
		}
	}, func() { x.send(0, 10, 10000, x.all(0)...) })
	w.do(func() {
		if n := w.count.drop[dropNotStored]; n == 0 || n > 2 || len(said) != int(n) {
			t.Errorf("%d packets are counted, and the log has %q", n, said)
		}
	})
	x.steady(0, func() { x.send(0, 5, 10000, x.all(0)...) })
	for i, m := range x.state().Status.Members {
		if !m.Live {
			t.Errorf("member %d was removed", i)
		}
	}
}
