// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

// An attempt that was refused gets the same answer each time that its Prepare is repeated. A
// second plan of it could take other legs, and a switch below that has not heard of the end of
// the first one would answer for that.

// refusal is an attempt that was refused, until its parent has ended it.
type refusal struct {
	id       attemptID
	problems []Problem
	expiry   timer[prepareKey]
}

// noteRefused records that g was refused.
func (r *Registrar) noteRefused(g *group) {
	b := g.branch
	k := prepareKey{g.reg.Group, b.parent}
	r.forgetRefused(k)
	x := &refusal{id: b.id, problems: b.problems}
	x.expiry.owner = k
	r.refusals[k] = x
	r.refusalExpiries.set(&x.expiry, r.now+3*b.left)
}

func (r *Registrar) forgetRefused(k prepareKey) {
	if x := r.refusals[k]; x != nil {
		r.refusalExpiries.stop(&x.expiry)
		delete(r.refusals, k)
	}
}

// refused returns why the attempt of k was refused, nil if it was not.
func (r *Registrar) refused(k prepareKey, id attemptID) []Problem {
	if x := r.refusals[k]; x != nil && x.id == id {
		return x.problems
	}
	return nil
}

// endRefused forgets the refusal of an attempt that the neighbour has ended.
func (r *Registrar) endRefused(k prepareKey, id attemptID) {
	if r.refused(k, id) != nil {
		r.forgetRefused(k)
	}
}
