// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import "github.com/gleam-rdma/gleam/host/endpoint"

// outstanding are the work requests of one queue whose completions have not
// been polled. The device completes the requests of a queue in the order in
// which they were posted, but names neither the kind of work nor, in some
// drivers, anything else but the wr_id of one that failed.
type outstanding struct {
	entries []request
	head, n int
}

type request struct {
	id uint64
	op endpoint.CompletionOp
}

func newOutstanding(depth int) outstanding { return outstanding{entries: make([]request, depth)} }

// room returns how many more requests there is room for.
func (o *outstanding) room() int { return len(o.entries) - o.n }

// push adds the youngest. The caller has seen to room.
func (o *outstanding) push(r request) {
	o.entries[(o.head+o.n)%len(o.entries)] = r
	o.n++
}

// drop takes back the k youngest, which were not posted after all.
func (o *outstanding) drop(k int) { o.n -= k }

// pop takes the oldest; false if there is none.
func (o *outstanding) pop() (request, bool) {
	if o.n == 0 {
		return request{}, false
	}
	r := o.entries[o.head]
	o.head = (o.head + 1) % len(o.entries)
	o.n--
	return r, true
}
