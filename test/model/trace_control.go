// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"strings"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/mcast/token"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/model/notation"
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
		fmt.Fprintf(t, " about=%s at=%s", name(int(at.Source)-1), notation.PSN(rocev2.PSN(at.PSN)))
	}
	if at.Needed != token.NoMember {
		fmt.Fprintf(t, " needs=%s", name(int(at.Needed)-1))
	}
	fmt.Fprint(t, "\n----\n")
}

// reportLine is a report that a switch sends.
func reportLine(r *mcast.Report) string {
	m, t := &r.Message, &strings.Builder{}
	fmt.Fprintf(t, "report to %d: session %d, number %d after %d", r.Neighbor, m.Session, m.Seq, m.Ack)
	if m.Poll {
		fmt.Fprint(t, ", poll")
	}
	fmt.Fprintf(t, "; term %d", m.Term)
	fields(t, m, ", %s %d", ", %s")
	if at := &m.Position; at.Source != token.NoMember {
		fmt.Fprintf(t, "; %s before %s", name(int(at.Source)-1), notation.PSN(rocev2.PSN(at.PSN)))
	}
	if n := m.Position.Needed; n != token.NoMember {
		fmt.Fprintf(t, "; where is %s", name(int(n)-1))
	}
	return t.String()
}

// figure draws the group of a switch, as mcast does.
func (r *recorder) figure(sw int, w *World, spec *mcast.GroupSpec) {
	own, at := membersAt(spec)
	var behind []notation.Behind
	if p := spec.Tree.Parent; p != 0 && at[p] == nil {
		behind = append(behind, notation.Behind{Name: fmt.Sprintf("N%d", p), Parent: true})
	}
	for _, l := range spec.Legs {
		if n := l.Neighbor; n != 0 {
			behind = append(behind, notation.Behind{Name: fmt.Sprintf("N%d", n), Parent: n == spec.Tree.Parent, Members: at[n]})
		}
	}
	r.text[sw].WriteString(notation.Figure(own, behind))
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
		fmt.Fprintf(t, "%s sq=%s rq=%s", nameOf(m), notation.PSN(m.SQPSN), notation.PSN(m.RQPSN))
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
