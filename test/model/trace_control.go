// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"strings"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/mcast/token"
)

// How reports and changes of the members are recorded.

// report records the arrival of a report.
func (r *recorder) report(t *strings.Builder, a *arrival) {
	m := &a.msg
	fmt.Fprintf(t, "report nbr=%d session=%d seq=%d ack=%d term=%d", a.nbr, m.Session, m.Seq, m.Ack, m.Term)
	if m.Poll {
		fmt.Fprint(t, " poll")
	}
	fields(t, m, " %s=%d", " %s")
	at := &m.Position
	if at.Layout != 0 {
		fmt.Fprintf(t, " layout=%d", at.Layout)
	}
	if at.Source != token.NoMember {
		fmt.Fprintf(t, " about=%s at=%x", name(int(at.Source)-1), at.PSN)
	}
	if at.Needed != token.NoMember {
		fmt.Fprintf(t, " needs=%s", name(int(at.Needed)-1))
	}
	fmt.Fprint(t, "\n----\n")
}

// fields writes the fields of a report that are not 0.
func fields(t *strings.Builder, m *token.Message, number, flag string) {
	for _, f := range []struct {
		name  string
		value uint64
	}{{"outdated", uint64(m.Outdated)}, {"crossings", m.Crossings}, {"member", uint64(m.Member)}} {
		if f.value != 0 {
			fmt.Fprintf(t, number, f.name, f.value)
		}
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"joined", m.Joined}, {"suspended", m.Suspended}, {"requests", m.Requests}, {"doubtful", m.Doubtful}} {
		if f.set {
			fmt.Fprintf(t, flag, f.name)
		}
	}
}

// update records a change of the members.
func (r *recorder) update(t *strings.Builder, w *World, sw int) {
	switch op := w.op.(type) {
	case mcast.PutGroup:
		r.group(w, sw, &op.Spec)
		return
	case mcast.DeleteGroup:
		fmt.Fprint(t, "delete\n----\n")
		return
	}
	op := w.op.(mcast.UpdateMembers)
	fmt.Fprint(t, "update")
	if p := op.Tree; p != nil {
		fmt.Fprintf(t, " parent=%d layout=%d", p.Parent, p.Layout)
	}
	if len(op.Remove) > 0 {
		var names []string
		for _, m := range op.Remove {
			names = append(names, name(int(m)))
		}
		fmt.Fprintf(t, " remove=(%s)", strings.Join(names, ","))
	}
	fmt.Fprintln(t)
	for _, m := range op.Move {
		fmt.Fprintf(t, "%s to=N%d\n", name(w.switches[sw].host[m.Member]), m.Leg.Neighbor)
	}
	for i := range op.Add {
		m := &op.Add[i].Member
		fmt.Fprintf(t, "%s sq=%x rq=%x", nameOf(m), uint32(m.SQPSN), uint32(m.RQPSN))
		if int(m.Leg) < len(w.switches[sw].spec.Legs) {
			fmt.Fprintf(t, " slot=%s", name(int(m.Leg)))
		}
		if m.Number != uint32(hostOf(m))+1 {
			fmt.Fprintf(t, " number=%d", m.Number)
		}
		fmt.Fprintln(t)
	}
	fmt.Fprint(t, "----\n")
}
