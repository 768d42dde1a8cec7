// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gleam-rdma/gleam/mcast/token"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/model/notation"
)

// peer is the neighbour of a transcript's switch, with a machine of its own. All members
// that the switch has behind it are at the peer, and rest as soon as others wait.
type peer struct {
	s      *transcript
	nbr    Neighbor
	epoch  uint32
	leg    token.Leg // the leg of the switch, at the peer
	m      *token.Machine
	out    token.Output
	behind map[token.Member]bool
	mid    token.Member // the peer's source that is in the middle of a message, as the transcript says
}

func (p *peer) Unfinished() (token.Member, bool) { return p.mid, true }

func (p *peer) Locate(k token.Member) token.Leg {
	if p.behind[k] {
		return token.Here
	}
	return p.leg
}

// meet makes the peers of a group, and connects them. The token is where the tree's root
// is: at the switch, unless parent is one of the peers.
func (s *transcript) meet(spec *GroupSpec) {
	s.peers = nil
	for _, l := range spec.Legs {
		if l.Kind != Forwarded {
			continue
		}
		p := &peer{s: s, nbr: l.Neighbor, epoch: spec.Tree.Epoch, behind: map[token.Member]bool{}}
		for i, m := range spec.Members {
			if spec.Legs[m.Leg] == l {
				p.behind[token.Member(i)+1] = true
			}
		}
		cfg := token.Config{Group: groupIP, Epoch: spec.Tree.Epoch, Switch: p}
		if l.Neighbor == spec.Tree.Parent {
			p.leg, cfg.Root, cfg.Children = 1, true, []token.Leg{1}
		}
		p.m = token.New(cfg)
		s.peers = append(s.peers, p)
	}
	if !s.manual {
		for _, p := range s.peers {
			s.session(p.nbr, 1)
		}
	}
}

// session sets the session of both ends.
func (s *transcript) session(n Neighbor, session uint64) {
	for _, p := range s.peers {
		if p.nbr == n && session != 0 {
			p.m.Up(s.now, p.leg, token.SessionOf(session, p.epoch), &p.out)
			p.note()
		} else if p.nbr == n {
			p.m.Cut(s.now, p.leg, &p.out)
			p.note()
		}
	}
	var out Output
	if err := s.sw.SetSession(s.now, 0, n, session, &out); err != nil {
		panic(err)
	}
	s.talk(&out)
}

// note takes the peer's reports, and lets its source rest when others wait.
func (p *peer) note() {
	for {
		for i := range p.out.Messages {
			p.s.toSwitch = append(p.s.toSwitch, reportFrom{p.nbr, p.out.Messages[i].Message})
		}
		if p.m.Wanted() && p.mid == token.NoMember {
			p.m.Rested(p.s.now, &p.out)
			continue
		}
		return
	}
}

type reportFrom struct {
	nbr Neighbor
	msg token.Message
}

// talk delivers the reports of out, and those that answer them, until there are no more.
func (s *transcript) talk(out *Output) {
	reports := append([]Report(nil), out.Reports...)
	for len(reports) > 0 || len(s.toSwitch) > 0 {
		for _, r := range reports {
			for _, p := range s.peers {
				if p.nbr == r.Neighbor {
					p.m.Receive(s.now, p.leg, &r.Message, &p.out)
					p.note()
				}
			}
		}
		reports = nil
		if len(s.toSwitch) > 0 {
			r := s.toSwitch[0]
			s.toSwitch = s.toSwitch[1:]
			var o Output
			if s.before != nil {
				s.before()
			}
			s.sw.InputReport(s.now, 0, r.nbr, &r.msg, &o)
			reports = append(reports, o.Reports...)
		}
	}
}

// invite lets the token come to where a packet is from, as if it had been requested before.
func (s *transcript) invite(p *Packet) {
	g := s.sw.group(0)
	if g == nil || g.tree() == nil || s.manual || g.is(failed) {
		return
	}
	k, ok := g.memberAt(p.Src)
	if !ok || !g.members[k].live || p.Neighbor != g.legs[g.members[k].leg].neighbor {
		return
	}
	if p.Neighbor == 0 {
		var out Output
		if !g.tree().serves(k) {
			g.tree().request(s.now, k, &out)
			s.talk(&out)
		}
		return
	}
	for _, q := range s.peers {
		if q.nbr == p.Neighbor && q.m.Serving() != g.numberOf(k) {
			q.m.Request(s.now, g.numberOf(k), &q.out)
			q.note()
			s.talk(&Output{})
		}
	}
}

// reportLine is what differs from an empty report.
func reportLine(r *Report) string {
	m, w := &r.Message, &strings.Builder{}
	fmt.Fprintf(w, "report to %d: session %d, number %d after %d", r.Neighbor, m.Session, m.Seq, m.Ack)
	if m.Poll {
		w.WriteString(", poll")
	}
	fmt.Fprintf(w, "; term %d", m.Term)
	for _, f := range []struct {
		name  string
		value uint64
	}{{"outdated", uint64(m.Outdated)}, {"crossings", m.Crossings}, {"member", uint64(m.Member)}} {
		if f.value != 0 {
			fmt.Fprintf(w, ", %s %d", f.name, f.value)
		}
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"joined", m.Joined}, {"suspended", m.Suspended}, {"requests", m.Requests}, {"doubtful", m.Doubtful}} {
		if f.set {
			fmt.Fprintf(w, ", %s", f.name)
		}
	}
	at := &m.Position
	if at.Source != token.NoMember {
		said := "before"
		if at.Over {
			said = "sends nothing before"
		}
		fmt.Fprintf(w, "; %s %s %s", nameOf(MemberID(at.Source-1)), said, notation.PSN(rocev2.PSN(at.PSN)))
		if at.Over {
			fmt.Fprintf(w, ", all is had before %s", notation.PSN(rocev2.PSN(at.Next)))
		} else if at.Next != at.PSN {
			fmt.Fprintf(w, " of %s", notation.PSN(rocev2.PSN(at.Next)))
		}
	}
	if at.Needed != token.NoMember {
		fmt.Fprintf(w, "; where is %s", nameOf(MemberID(at.Needed-1)))
	}
	return w.String()
}

// place is the place in the tree that an update gives; nil without one.
func (a args) place() *TreeSpec {
	if !a.d.HasArg("layout") {
		return nil
	}
	t := &TreeSpec{Parent: Neighbor(a.dec("parent")), Layout: uint32(a.dec("layout"))}
	if a.d.HasArg("levels") { // behind neighbour 1
		t.Levels = map[Neighbor]uint8{1: uint8(a.dec("levels"))}
	}
	return t
}

// moveTo is the move of a member that a line gives: "C to=N2".
func moveTo(a args, f []string, legs *[]string) MoveMember {
	name := strings.TrimPrefix(f[1], "to=")
	m := MoveMember{Member: MemberID(f[0][0] - 'A'), To: LegID(slices.Index(*legs, name))}
	if !slices.Contains(*legs, name) {
		m.To = LegID(len(*legs))
		*legs = append(*legs, name)
	}
	if name[0] == 'N' {
		m.Leg = LegSpec{Kind: Forwarded, Neighbor: Neighbor(num(a.t, name[1:], 10, 32))}
	}
	return m
}

// position is the position in a report: "about=A at=5", with "next=8" if more has come there, and with
// "ends" behind the end of a message, "over" if the source sends nothing before that; and "needs=A", which asks.
func (a args) position() (p token.Position) {
	if n := a.str("about", ""); n != "" {
		p.Source, p.PSN, p.Ends = token.Member(n[0]-'A')+1, uint32(a.psn("at")), a.d.HasArg("ends")
		p.Over = a.d.HasArg("over")
		if p.Next = p.PSN; a.d.HasArg("next") {
			p.Next = uint32(a.psn("next"))
		}
	}
	if n := a.str("needs", ""); n != "" {
		p.Needed = token.Member(n[0]-'A') + 1
	}
	p.Layout = uint32(a.dec("layout"))
	return p
}

// joinTree lets all switches below the root s take part, in their first term.
func joinTree(t fatalReporter, s *Switch, id GroupID) {
	var out Output
	x := s.groups[id].tree()
	for _, l := range x.g.forwardedLegs() {
		n := x.g.legs[l].neighbor
		if err := s.SetSession(0, id, n, 1, &out); err != nil {
			t.Fatalf("%v", err)
		}
		report := token.Message{Session: token.SessionOf(1, 0), Seq: 1, Report: token.Report{Term: token.FirstTerm(0), Joined: true}}
		if s.InputReport(0, id, n, &report, &out); out.Drop != None {
			t.Fatalf("%v", out.Drop)
		}
	}
}

// treeCommand runs the commands session and report.
func (s *transcript) treeCommand(a args, w *strings.Builder) {
	nbr := Neighbor(a.dec("nbr"))
	if a.d.Cmd == "session" {
		last := a.d.CmdArgs[len(a.d.CmdArgs)-1].Key
		if err := s.sw.SetSession(s.now, 0, nbr, num(a.t, last, 10, 64), &s.out); err != nil {
			fmt.Fprintln(w, "error:", err)
			return
		}
	} else {
		s.sw.InputReport(s.now, 0, nbr, &token.Message{
			Group: groupIP, Session: a.dec("session"), Seq: a.dec("seq"), Ack: a.dec("ack"), Poll: a.d.HasArg("poll"), Position: a.position(),
			Report: token.Report{
				Term: token.Term(a.dec("term")), Outdated: token.Term(a.dec("outdated")), Crossings: a.dec("crossings"), Member: token.Member(a.dec("member")),
				Joined: a.d.HasArg("joined"), Suspended: a.d.HasArg("suspended"), Requests: a.d.HasArg("requests"), Doubtful: a.d.HasArg("doubtful"),
			},
		}, &s.out)
	}
	s.ledger.close(fatal{}, s.sw, nil, &s.out)
	s.print()
}

func (a args) dec(key string) uint64 { return num(a.t, a.str(key, "0"), 10, 64) }
