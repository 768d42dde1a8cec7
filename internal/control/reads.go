// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "github.com/gleam-rdma/gleam/dataplane"

// reading is a request of the API that changes nothing. The control loop serves it in two steps: it
// takes up what the workers of the groups concerned and the neighbour switches have to tell,
// and then calls read. So nothing is read that is not in journal and state file.
type reading struct {
	groups func() []*group     // the groups concerned
	read   func([]groupStatus) // the reader of their states; changes nothing
}

// groupStatus is a group with the state that its worker had when the loop took that up.
type groupStatus struct {
	*group
	now dataplane.GroupState
}

// serveReading is the turn of the control loop for a request that reads.
func (c *control) serveReading(r reading) {
	c.followNeighbours()
	groups := r.groups()
	list := make([]groupStatus, len(groups))
	for i, g := range groups {
		list[i].group = g
		_ = g.handle.Read(&list[i].now) // an error: the switch has stopped
		c.applyOutcomes(g, &list[i].now.Outcomes)
	}
	r.read(list)
}
