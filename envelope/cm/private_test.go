// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"slices"
	"testing"
)

// The MAC covers the group, the member, the port, the queue pair and each byte before it.
func TestMACCovers(t *testing.T) {
	w := newWorld(t, 0, 2, true)
	h := w.hosts[0]
	h.connect()
	b, q := h.now.sent.Data, h.now.sent.Request
	if p, ok := readPrivate(b); !ok || p.key != testKey || p.window.Base != 0x7000 || !q.authentic(w.key, w.port, b) {
		t.Fatalf("%+v, %v", p, ok)
	}
	for name, change := range map[string]func(*Request){
		"group": func(q *Request) { q.Dst = q.Dst.Next() }, "member": func(q *Request) { q.Src = q.Src.Next() }, "queue pair": func(q *Request) { q.QPN++ },
	} {
		x := q
		if change(&x); x.authentic(w.key, w.port, b) {
			t.Errorf("authentic with another %s", name)
		}
	}
	if q.authentic(w.key, w.port+1, b) {
		t.Error("authentic at another port")
	}
	for i := range b {
		c := slices.Clone(b)
		if c[i] ^= 1; q.authentic(w.key, w.port, c) {
			t.Errorf("authentic with another byte %d", i)
		}
	}
}

// Private data of another program is that of another program, whatever is wrong.
func TestPrivateDataRead(t *testing.T) {
	w := newWorld(t, 0, 2, true)
	h := w.hosts[0]
	h.connect()
	b := h.now.sent.Data
	for i, x := range map[int]byte{0: 'g', 3: 'N', 4: 1, 5: 8 | flagWindow, 36: 1, 39: 1} {
		c := slices.Clone(b)
		c[i] = x
		if _, ok := readPrivate(c); ok {
			t.Errorf("read with %#x at byte %d", x, i)
		}
	}
	c := slices.Clone(b)
	c[5] = 0
	if _, ok := readPrivate(c); ok {
		t.Error("read with a window and without its flag")
	}
	if _, ok := readPrivate(b[:privateLen-1]); ok {
		t.Error("read with a byte too few")
	}
	c[5] = flagReceiveOnly
	clear(c[16:36])
	if p, ok := readPrivate(c); !ok || !p.receiveOnly {
		t.Errorf("receive-only: %+v, %v", p, ok)
	}
}
