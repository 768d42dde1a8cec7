// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/model/notation"
)

// group registers a group. The answer begins with its figure.
func (s *transcript) group(a args, w *strings.Builder) {
	spec := GroupSpec{IP: groupIP, GroupParams: GroupParams{QPN: groupQPN, PathMTU: 1024}, Window: windowOf(a.t, a.list("window"))}
	if v := a.str("pmtu", ""); v != "" {
		spec.PathMTU = int(num(a.t, v, 10, 32))
	}
	s.pmtu = uint16(spec.PathMTU)
	switch p, k, _ := strings.Cut(a.str("policy", ""), ":"); p {
	case "evict":
		spec.Policy = Evict
	case "quorum":
		spec.Policy, spec.Quorum = Quorum, int(num(a.t, k, 10, 16))
	}
	spec.DeadAfter, _ = time.ParseDuration(a.str("dead", "0"))
	spec.AllDeadAfter, _ = time.ParseDuration(a.str("alldead", "0"))
	spec.DeadAfterMax, _ = time.ParseDuration(a.str("deadmost", "0"))
	spec.SourceTimeout, _ = time.ParseDuration(a.str("stall", "0"))
	spec.PSNProbe, _ = time.ParseDuration(a.str("verify", "0"))
	spec.SilentFor, _ = time.ParseDuration(a.str("silent", "0"))
	spec.LagTime, _ = time.ParseDuration(a.str("lagtime", "0"))
	spec.TargetKey, spec.AckEvery = uint32(a.hex("target")), uint32(num(a.t, a.str("ackevery", "0"), 10, 32))
	spec.LagPSNs = int(num(a.t, a.str("lag", "0"), 10, 31))
	if v := a.list("repair"); len(v) == 3 {
		s.bytes = minFrameBytes
		spec.Repair.Bytes, spec.Repair.Tries = minFrameBytes*int64(num(a.t, v[0], 10, 16)), int(num(a.t, v[2], 10, 8))
		var err error
		if spec.Repair.Timeout, err = time.ParseDuration(v[1]); err != nil {
			a.t.Fatal(err)
		}
		s.out.MaxResends = int(num(a.t, a.str("room", "0"), 10, 31))
	}
	spec.FastPath = a.fastPath()
	behind := map[string]Neighbor{}
	for n, key := range []string{"fwd", "fwd2", "fwd3"} {
		for _, m := range a.list(key) {
			behind[m] = Neighbor(n + 1)
		}
	}
	if a.d.HasArg("anew") {
		s.sw, s.paused = New(Limits{}), [26]time.Duration{}
	}
	s.legs = nil
	legOf := map[Neighbor]LegID{}
	var resume Positions
	levels := map[Neighbor]uint8{1: uint8(num(a.t, a.str("levels", "0"), 10, 8))}
	for _, n := range a.list("members") {
		at := Position{}
		m := MemberSpec{MemberRecord: MemberRecord{IP: ipOf(n), QPN: rocev2.QPN(0x100 + int(n[0]))}, Leg: LegID(len(s.legs))}
		for _, line := range strings.Split(a.d.Input, "\n") {
			f := strings.Fields(line)
			if len(f) == 0 || f[0] != n {
				continue
			}
			for _, kv := range f[1:] {
				k, v, _ := strings.Cut(kv, "=")
				switch k {
				case "at":
					send, receive, _ := strings.Cut(v, ",")
					at = Position{Known: true, Send: psn(a.t, send), Receive: psn(a.t, receive), Joining: at.Joining}
				case "sq":
					m.SQPSN = psn(a.t, v)
				case "joining":
					at.Joining = true
				case "receive-only", "leads", "follows":
					setRole(&m, k)
				case "rq":
					m.RQPSN = psn(a.t, v)
				case "window":
					m.Window = windowOf(a.t, strings.Split(v, ","))
				}
			}
		}
		nbr := behind[n]
		l, known := legOf[nbr]
		switch {
		case nbr == 0:
			spec.Legs = append(spec.Legs, LegSpec{Port: Port(n[0] - 'A')})
			s.legs = append(s.legs, n)
		case known:
			m.Leg = l
		default:
			legOf[nbr] = m.Leg
			spec.Legs = append(spec.Legs, LegSpec{Kind: Forwarded, Neighbor: nbr, Levels: levels[nbr]})
			s.legs = append(s.legs, fmt.Sprintf("N%d", nbr))
		}
		spec.Members = append(spec.Members, m)
		resume.Members = append(resume.Members, at.afterWrap(m.SQPSN))
	}
	spec.RepliesTo = MemberID(a.str("replies", "A")[0] - 'A')
	spec.Stored = a.d.HasArg("stored")
	if from := a.str("resume", ""); from != "" {
		if resume.HasSource = from != "-"; resume.HasSource {
			resume.Source = MemberID(from[0] - 'A')
		}
		spec.Resume = &resume
	}
	if n := a.str("parent", ""); n != "" {
		spec.Tree.Parent = Neighbor(num(a.t, n, 10, 32))
	}
	spec.Tree.Running, spec.Tree.Layout = a.d.HasArg("running"), uint32(a.dec("layout"))
	spec.Tree.Epoch, s.manual = uint32(a.hex("epoch")), a.d.HasArg("reports")
	if s.apply(w, PutGroup{spec}); s.ok {
		figure(w, &spec)
		s.meet(&spec)
	}
}

// figure draws the group.
func figure(w *strings.Builder, spec *GroupSpec) {
	var own []string
	var behind []notation.Behind
	if p := spec.Tree.Parent; p != 0 && !slices.ContainsFunc(spec.Legs, func(l LegSpec) bool { return l.Neighbor == p }) {
		behind = append(behind, notation.Behind{Name: fmt.Sprintf("N%d", p), Parent: true})
	}
	for i, l := range spec.Legs {
		b := notation.Behind{Name: fmt.Sprintf("N%d", l.Neighbor), Parent: l.Neighbor == spec.Tree.Parent, Levels: int(l.Levels)}
		for m := range spec.Members {
			if spec.Members[m].Leg == LegID(i) {
				b.Members = append(b.Members, nameOf(MemberID(m)))
			}
		}
		if l.Kind == Forwarded {
			behind = append(behind, b)
		} else {
			own = append(own, b.Members...)
		}
	}
	w.WriteString(notation.Figure(own, behind))
}
