// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fastpath

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A copy that was withheld is none that was lost, also where it is counted before the batch
// in which it was.
func TestTransmitted(t *testing.T) {
	m := Maps{sent: make([]sentState, 2)}
	x := &m.sent[1]
	for _, tc := range []struct {
		sent, unsent, withheld, errno uint64
		want                          Transmitted
	}{
		{0, 0, 0, 0, Transmitted{}},
		{10, 7, 3, 0, Transmitted{Sent: 10, Lost: 4}},
		{10, 7, 7, 0, Transmitted{Sent: 10}},
		{10, 7, 9, 0, Transmitted{Sent: 10}},
		{0, 7, 0, 6, Transmitted{Lost: 7, Error: unix.ENXIO}},
	} {
		x.sent.Store(tc.sent)
		x.unsent.Store(tc.unsent)
		x.withheld.Store(tc.withheld)
		x.error.Store(tc.errno)
		if is := m.Transmitted(1); is != tc.want {
			t.Errorf("%+v: %+v", tc, is)
		}
	}
	if is := m.Transmitted(0); is != (Transmitted{}) {
		t.Errorf("the other port: %+v", is)
	}
}
