// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package token

import "testing"

// A copy goes on by itself, at the switch that it is given.
func TestClone(t *testing.T) {
	d, c := newDesk(false), newDesk(false)
	d.waiting()
	c.m, c.said = d.m.Clone(c), d.said
	c.m.Request(0, 12, &c.out)
	c.m.Cut(0, 1, &c.out)
	if d.m.Session(1) != 1 || c.m.Session(1) != 0 {
		t.Errorf("leg 1 is cut at the copy: session %d at the original, %d at the copy", d.m.Session(1), c.m.Session(1))
	}
	c.m.Add(0, 3, &c.out)
	c.m.Rested(0, &c.out)
	if waiting, children := d.m.Waiting(); waiting != 1 || children != 2 || d.m.Term() != testTerm {
		t.Errorf("the copy has changed the original: %d wait, %d children", waiting, children)
	}
	if waiting, children := c.m.Waiting(); waiting != 2 || children != 3 {
		t.Errorf("the copy: %d wait, %d children", waiting, children)
	}
	if d.m.cfg.Switch != Switch(d) || c.m.cfg.Switch != Switch(c) || &d.m.cfg.Children[0] == &c.m.cfg.Children[0] {
		t.Error("the copy shares its switch or children with the original")
	}
}
