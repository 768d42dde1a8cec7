// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/bpf/fastpath"
	"github.com/gleam-rdma/gleam/dataplane"
)

// describeFastPath returns the API's view of the way of a group's data; nil if no group may
// take the fast path.
func (c *control) describeFastPath(f *dataplane.FastStatus) *api.FastPath {
	if !c.dir.defaults.fastPath {
		return nil
	}
	a := &api.FastPath{
		Way: f.Path.String(), Word: f.Why.Word.String(), Reason: f.Why.Text(), Remedy: f.Why.Remedy(), Packets: f.Packets, Copies: f.Copies, Grants: f.Grants, Revokes: f.Revokes, Ring: f.Ring,
		ACKs: f.Taken, Answers: f.Sent, ACKsBy: f.ACKs,
	}
	if f.Since > 0 {
		a.Since = time.Now().Add(f.Since - c.now())
	}
	for r, n := range f.Left {
		if n > 0 {
			if a.Left == nil {
				a.Left = make(map[string]uint64)
			}
			a.Left[fastpath.Reason(r).String()] = n
		}
	}
	return a
}
