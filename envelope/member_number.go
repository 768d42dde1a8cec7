// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import "slices"

// Members have numbers. All switches of a tree know a member by the same one, and no number
// is given again in the life of a group: from a registration without a base over all updates
// of it. The root assigns them.

// Number returns the number of member i.
func (r *Registration) Number(i int) uint32 {
	if r.Numbers == nil {
		return uint32(i) + 1
	}
	return r.Numbers[i]
}

// numbers returns those of all members.
func (r *Registration) numbers() []uint32 {
	ns := make([]uint32, len(r.Members))
	for i := range ns {
		ns[i] = r.Number(i)
	}
	return ns
}

// setNumbers records the numbers of the members; those from 1 on take no memory.
func (r *Registration) setNumbers(ns []uint32) {
	r.Numbers = nil
	for i, n := range ns {
		if n != uint32(i)+1 {
			r.Numbers = ns
		}
	}
}

// loseMember removes member i.
func (r *Registration) loseMember(i int) {
	if r.Numbers != nil || i < len(r.Members)-1 {
		r.setNumbers(slices.Delete(r.numbers(), i, i+1))
	}
	r.Members = append(r.Members[:i:i], r.Members[i+1:]...) // a Table may have the present ones
	if t := r.Tree; t != nil {
		t.Legs = slices.Delete(t.Legs, i, i+1)
	}
}

// assignNumbers numbers the members of g, which updates old or begins a group: those with
// an unchanged record keep their numbers, the others get the next ones.
func (g *group) assignNumbers(old *group) {
	if g.reg.Base == 0 {
		g.reg.Origin, g.reg.Numbers, g.known, g.last = g.reg.Epoch, nil, 0, uint32(len(g.reg.Members))
		return
	}
	g.reg.Origin, g.known, g.last = old.reg.Origin, old.last, old.last
	ns := make([]uint32, len(g.reg.Members))
	for i := range ns {
		if j := old.reg.Find(g.reg.Members[i].Key()); j >= 0 && old.reg.Members[j] == g.reg.Members[i] {
			ns[i] = old.reg.Number(j)
		} else {
			g.last++
			ns[i] = g.last
		}
	}
	g.reg.setNumbers(ns)
}

// isFresh reports whether member i came into g with its update; all members of a group that
// began are fresh.
func (g *group) isFresh(i int) bool { return g.reg.Number(i) > g.known }
