// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"maps"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/dataplane"
)

// The API has the data plane's words for the ways of a group's data, the time at which it took
// the present one, and the reasons that have occurred.
func TestDescribeFastPath(t *testing.T) {
	f := newFakeSwitch(t, 2, 1)
	f.control.do(func() {
		c := f.control
		s := dataplane.FastStatus{Packets: 7, Copies: 21, Grants: 2, Revokes: 1, Ring: 64}
		s.Left[fastpath.Behind] = 3
		c.dir.defaults.fastPath = false
		if c.describeFastPath(&s) != nil {
			t.Error("the fast path is off, and there is something of it")
		}
		c.dir.defaults.fastPath = true
		for path, way := range map[dataplane.Path]string{dataplane.PathNever: api.WayNever, dataplane.PathSlow: api.WaySlow, dataplane.PathFast: api.WayFast} {
			s.Path = path
			a := c.describeFastPath(&s)
			if a.Way != way || a.Packets != 7 || a.Copies != 21 || a.Grants != 2 || a.Revokes != 1 || a.Ring != 64 || !maps.Equal(a.Left, map[string]uint64{"behind": 3}) {
				t.Errorf("%v: %+v", path, a)
			}
		}
		s.Why.Word = dataplane.NumFastWords - 1
		if a := c.describeFastPath(&s); a.Word != s.Why.Word.String() || a.Reason != s.Why.Text() || a.Remedy != s.Why.Remedy() || a.Word == "" || a.Reason == "" || a.Remedy == "" {
			t.Errorf("why it is not fast: %+v", a)
		}
		s.Since = c.now()
		if at := c.describeFastPath(&s).Since; time.Since(at) > time.Minute || time.Since(at) < 0 {
			t.Errorf("since %v", at)
		}
	})
}
