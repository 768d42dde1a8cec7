// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "github.com/gleam-rdma/gleam/dataplane"

// reading is a request of the API that changes nothing. The control loop serves it in two steps: it
// takes up what the workers of the groups concerned and the neighbour switches have to tell,
// and then calls read. So nothing is read that is not in journal and state file.
type reading struct {
	groups func() []*group     // the groups concerned
	read   func([]groupStatus) // is given them; changes nothing
}

// groupStatus is a group with the state that its worker had when the loop took that up.
type groupStatus struct {
	*group
	now dataplane.GroupState
}

// read runs f, which changes nothing, on the control loop, and returns when it has run; it returns
// false if the loop has ended.
func (c *control) read(f func()) bool {
	return c.readGroups(func() []*group { return nil }, func([]groupStatus) { f() })
}

// readGroups is read for what needs the state of groups.
func (c *control) readGroups(groups func() []*group, f func([]groupStatus)) bool {
	done := make(chan struct{})
	select {
	case c.reads <- reading{groups, func(list []groupStatus) { f(list); close(done) }}:
		<-done
		return true
	case <-c.ended:
		return false
	}
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
