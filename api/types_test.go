// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import "testing"

func TestUnacknowledged(t *testing.T) {
	for _, c := range []struct {
		acked, next PSN
		want        int
	}{{0, 0, 0}, {0, 1, 0}, {0, 2, 1}, {0xffffff, 0, 0}, {0xffffff, 3, 3}, {0xfffffe, 0, 1}} {
		if got := (&Group{AckPSN: c.acked, NextPSN: c.next}).Unacknowledged(); got != c.want {
			t.Errorf("acked %#x, next %#x: %d unacknowledged, want %d", c.acked, c.next, got, c.want)
		}
	}
}
