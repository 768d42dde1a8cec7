// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"testing"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// Every byte of a payload is in exactly one message, also where the last one is
// shorter.
func TestMessages(t *testing.T) {
	for _, c := range []struct{ total, message int64 }{{1, 1}, {1, 100}, {100, 100}, {101, 100}, {199, 100}, {1 << 20, 4096}} {
		p := Messages{Op: endpoint.Send, Len: c.total, Message: c.message}
		at := 0
		for i := range p.Count() {
			s := p.Segment(nil, i)
			if s.Offset != at || s.Len < 1 || s.Len > int(c.message) {
				t.Errorf("%d in messages of %d: number %d is %+v, want it at %d", c.total, c.message, i, s, at)
			}
			at += s.Len
		}
		if int64(at) != c.total {
			t.Errorf("%d in messages of %d: they have %d bytes", c.total, c.message, at)
		}
	}
}
