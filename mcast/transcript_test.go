// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/model/notation"
)

// transcript runs a transcript: a file of testdata with commands and the switch's output.
// Members are letters: A is 10.0.0.1, B is 10.0.0.2 and so on; the group is 10.9.9.9. Package
// notation says how PSNs and copies are written, in questions and in answers: 5 is the PSN 5,
// -1 is 0xffffff, the one before 0, and "copy B,C 0..9" is ten packets, each to B and then to C. PSNs
// from 100 on are hexadecimal, with 0x; so are, without it, addresses, keys, virtual QPNs, tags,
// codes and dma=. The commands:
//
//	group members=(A,B,C) [policy=evict|quorum:2] [dead=10ms] [deadmost=50ms] [alldead=50ms] [lag=PSNS] [lagtime=10ms] [stall=1s] [pmtu=N] [window=(base,len,rkey)]
//	      [target=KEY] [fwd=(B,C)] [fwd2=(D)] [levels=2]   members behind neighbours 1 and 2; levels of switches behind 1
//	      [verify=2ms]   the numberings of receivers are verified
//	      [stored]   the positions are stored
//	      [silent=20ms]   for how long nothing has gone to the members
//	      [resume=A|-]   resumes the turn of A, or no turn, from the positions of the members
//	      [parent=1] [epoch=1]   the switch's place in the tree; without parent it is the root
//	      [reports]   reports are printed, and come by commands; else each neighbour has a
//	      machine of its own, and the token comes to where data is from, if it can
//	      [anew]   on a new switch without groups
//	      [repair=(FRAMES,timeout,tries)] [room=N]   room for FRAMES retained frames, and for N copies of them in a call
//	  and one line per member whose values are not all 0:  A sq=0x100 rq=0x200 window=base,len,rkey [receive-only] [at=SEND,RECEIVE] [joining]   with a position; if SEND is sq, 2^24 packets on
//	data psn=5|5..9 [from=A] [op=SendOnly] [ar] [len=N] [va=X rkey=X dma=N] [nbr=N] [unverified]
//	     [targets=(B:va:rkey,…)]   a target message: WriteOnly with va=-1
//	     [large|unkept]   the frame takes the room of two; the frame cannot be retained
//	ack|nak|rnr|aeth psn=5 from=B [code=X] [msn=N] [becn] [nbr=N] [tag=X] [unverified]
//	cnp from=B
//	time +5ms           Advance to a later time
//	pause +5ms [leg=B]  the switch has paused for this time at B's port, or at all ports
//	delay B 5ms         the longest wait of a copy in the queue of B's port
//	clock +5ms          a later time without a call of Advance
//	add name=D [rq=X] [sq=X] | remove name=B | delete
//	update [remove=(B,C)]   and one line per new member:  D rq=X sq=X [to=N1] [slot=B] [number=N] [receive-only]
//	      [fast=(SLOTS,drain,backoff)]   the group may be offloaded to a fast path (transcript_offload_test.go)
//	skip hi=X           everything up to X-1 has been forwarded, as one message
//	positions [history]  the present positions; history: and whose history is full
//	durable [NUMBER]    the present positions are durable; NUMBER: their number, if it is not the present one
//	session nbr=1 5     the session with neighbour 1; 0: it is cut off
//	report nbr=1 session=5 seq=1 [ack=N] [poll] [term=N] [outdated=N] [crossings=N] [member=N] [joined] [suspended] [requests] [doubtful]
//	room N              a call has room for N copies of retained frames
//	data|ack|nak|… explain   the explanation of the packet, which is not given to the switch
//	waits               what the next acknowledgement waits for
//	show                the group's state
type transcript struct {
	sw   *Switch
	now  time.Duration
	out  Output
	legs []string
	ok   bool // the last operation was applied

	answer notation.Answer

	pmtu   uint16
	first  Packet // the last FIRST of a WRITE; its LAST without len= has the rest of the length
	frame  Handle // the handle of the last packet
	bytes  uint32 // the bytes that a retained frame takes, with local repair
	ledger ledger

	peers    []*peer // the neighbours of a group with fwd=
	toSwitch []reportFrom
	manual   bool // reports are printed, and come as commands

	paused    [26]time.Duration // the ports' pauses, by port; each member has a port of its own
	before    func()            // called before each call of the switch, if set
	explained *explained        // explanations of all packets before they are served, if set
}

var groupIP = netip.MustParseAddr("10.9.9.9")

const groupQPN = 0x4242

func ipOf(name string) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, 0, name[0] - 'A' + 1})
}

func nameOf(m MemberID) string { return string(rune('A' + m)) }

// runTranscript runs the file of testdata that is named after the test.
func runTranscript(t *testing.T) {
	t.Helper()
	runTranscriptFile(t, "testdata/"+strings.TrimPrefix(t.Name(), "Test"))
}

func runTranscriptFile(t *testing.T, file string) {
	t.Helper()
	s := &transcript{sw: New(Limits{})}
	datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string { return s.command(t, d) })
}

// command runs one command, and returns its output.
func (s *transcript) command(t *testing.T, d *datadriven.TestData) string {
	var w strings.Builder
	s.run(t, d, &w)
	checkInvariants(t, s.sw.group(0))
	if w.Len() == 0 {
		return "nothing\n"
	}
	return w.String()
}

// enter does what has to be done before a call of the switch.
func (s *transcript) enter() {
	if s.before != nil {
		s.before()
	}
	s.ledger.open(s.sw)
}

func (s *transcript) run(t *testing.T, d *datadriven.TestData, w *strings.Builder) {
	defer s.answer.WriteTo(w)
	s.enter()
	a := args{t, d}
	switch d.Cmd {
	case "group":
		s.group(a, w)
	case "data", "ack", "nak", "rnr", "aeth", "cnp":
		s.packets(a, w)
	case "time":
		dt, err := time.ParseDuration(strings.TrimPrefix(d.CmdArgs[0].Key, "+"))
		if err != nil {
			t.Fatal(err)
		}
		s.now += dt
		s.sw.Advance(s.now, &s.out)
		s.ledger.close(t, s.sw, nil, &s.out)
		s.print()
	case "room":
		s.out.MaxResends = int(num(t, d.CmdArgs[0].Key, 10, 31))
	case "pause":
		dt, err := time.ParseDuration(strings.TrimPrefix(d.CmdArgs[0].Key, "+"))
		if err != nil {
			t.Fatal(err)
		}
		for p := range s.paused {
			if n := a.str("leg", ""); n == "" || Port(n[0]-'A') == Port(p) {
				s.paused[p] += dt
				s.sw.SetPortPaused(Port(p), s.paused[p])
			}
		}
	case "delay":
		dt, err := time.ParseDuration(d.CmdArgs[1].Key)
		if err != nil {
			t.Fatal(err)
		}
		s.sw.SetPortDelay(Port(d.CmdArgs[0].Key[0]-'A'), dt)
	case "clock":
		dt, err := time.ParseDuration(strings.TrimPrefix(d.CmdArgs[0].Key, "+"))
		if err != nil {
			t.Fatal(err)
		}
		s.now += dt
	case "deadline":
		if at, ok := s.sw.NextDeadline(); ok {
			fmt.Fprintf(w, "in %v\n", at-s.now)
		} else {
			fmt.Fprintln(w, "none")
		}
	case "add":
		n := a.str("name", "")
		s.apply(w, AddMember{0, MemberSpec{
			MemberRecord: MemberRecord{IP: ipOf(n), QPN: rocev2.QPN(0x100 + int(n[0])), SQPSN: a.psn("sq"), RQPSN: a.psn("rq")}, Number: uint32(n[0]-'A') + 1, Leg: LegID(len(s.legs)),
		}, LegSpec{}, 0})
		s.legs = append(s.legs, n)
	case "remove":
		s.apply(w, RemoveMember{0, MemberID(a.str("name", "")[0] - 'A')})
	case "delete":
		s.apply(w, DeleteGroup{})
	case "update":
		s.update(a, w)
	case "waits":
		s.waits(w)
	case "show":
		s.show(w)
	case "positions":
		s.positions(a, w)
	case "skip":
		s.sw.skip(a.psn("hi"), 1)
	case "durable":
		s.durable(a, w)
	case "offload", "acked", "covered", "leaves", "revoked", "requeue":
		s.offload(a, w)
	case "session", "report":
		s.treeCommand(a, w)
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
}

func (s *transcript) update(a args, w *strings.Builder) {
	op := UpdateMembers{}
	for _, n := range a.list("remove") {
		op.Remove = append(op.Remove, MemberID(n[0]-'A'))
	}
	legs := slices.Clone(s.legs)
	op.Tree, op.Stored = a.place(), a.d.HasArg("stored")
	for _, line := range strings.Split(a.d.Input, "\n") {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) == 2 && strings.HasPrefix(f[1], "to=") {
			op.Move = append(op.Move, moveTo(a, f, &legs))
			continue
		}
		m, spec := MemberSpec{MemberRecord: MemberRecord{IP: ipOf(f[0]), QPN: rocev2.QPN(0x100 + int(f[0][0]))}, Number: uint32(f[0][0]-'A') + 1, Leg: LegID(len(legs))}, LegSpec{}
		for _, kv := range f[1:] {
			k, v, _ := strings.Cut(kv, "=")
			switch k {
			case "receive-only":
				m.ReceiveOnly = true
			case "sq":
				m.SQPSN = psn(a.t, v)
			case "rq":
				m.RQPSN = psn(a.t, v)
			case "number":
				m.Number = uint32(num(a.t, v, 10, 32))
			case "slot":
				m.Leg = LegID(v[0] - 'A')
			case "to":
				at := moveTo(a, f[:2], &legs)
				m.Leg, spec = at.To, at.Leg
			}
		}
		switch {
		case spec != LegSpec{}:
		case int(m.Leg) < len(legs):
			legs[m.Leg] = f[0]
		default:
			legs = append(legs, f[0])
		}
		op.Add = append(op.Add, AddMember{Member: m, Leg: spec})
	}
	if s.apply(w, op); s.ok {
		s.legs = legs
	}
}

func (s *transcript) apply(w *strings.Builder, op Op) {
	if err := s.sw.Apply(s.now, op, &s.out); err != nil {
		fmt.Fprintln(w, "error:", err)
		s.ok = false
		return
	}
	s.ok = true
	s.ledger.close(fatal{}, s.sw, nil, &s.out)
	s.print()
}

func (s *transcript) packets(a args, w *strings.Builder) {
	p := Packet{
		Group: groupIP, DestQP: groupQPN, Src: ipOf(a.str("from", "A")), Neighbor: Neighbor(a.hex("nbr")),
		Verified: !a.d.HasArg("unverified"), AckReq: a.d.HasArg("ar"), BECN: a.d.HasArg("becn"),
		VA: a.va(), RKey: uint32(a.hex("rkey")), DMALen: uint32(a.hex("dma")),
	}
	for _, v := range a.list("targets") {
		f := strings.Split(v, ":")
		p.Targets = append(p.Targets, Target{MemberID(f[0][0] - 'A'), num(a.t, f[1], 16, 64), uint32(num(a.t, f[2], 16, 32))})
	}
	if ip := a.str("to", ""); ip != "" {
		p.Group = netip.MustParseAddr(ip)
	}
	if a.d.HasArg("qpn") {
		p.DestQP = rocev2.QPN(a.hex("qpn"))
	}
	switch a.d.Cmd {
	case "data":
		name := a.str("op", "SendOnly")
		op, ok := opNames[name]
		if !ok {
			a.t.Fatalf("unknown opcode %s", name)
		}
		p.Op, p.Payload = op, 100
		if op.Is(rocev2.OpFirst | rocev2.OpMiddle) {
			p.Payload = s.pmtu
		}
		switch {
		case op.Is(rocev2.OpRETH) && op.Is(rocev2.OpEnd):
			p.Payload = uint16(min(p.DMALen, uint32(s.pmtu)))
		case op.Is(rocev2.OpRETH) && p.DMALen == 0:
			p.DMALen = 2 * uint32(p.Payload)
		}
		if v := a.str("len", ""); v != "" {
			p.Payload = uint16(num(a.t, v, 10, 16))
		}
	case "cnp":
		p.Op, p.BECN = rocev2.CNP, true
	default:
		p.Op, p.MSN = rocev2.Acknowledge, rocev2.MSN(num(a.t, a.str("msn", "1"), 10, 24))
		if g := s.sw.group(0); p.Neighbor != 0 && g != nil {
			if k, ok := g.memberAt(p.Src); ok {
				p.MSN = g.tagOf(k)
			}
		}
		if a.d.HasArg("tag") {
			p.MSN = rocev2.MSN(a.hex("tag"))
		}
		p.Syndrome = map[string]rocev2.Syndrome{"ack": 0x1F, "nak": 0x60, "rnr": 0x20}[a.d.Cmd]
		if a.d.Cmd == "rnr" {
			p.Syndrome |= rocev2.Syndrome(a.hex("code"))
		} else if a.d.HasArg("code") {
			p.Syndrome = rocev2.Syndrome(a.hex("code"))
		}
	}
	from, to, _ := strings.Cut(a.str("psn", "0"), "..")
	if to == "" {
		to = from
	}
	for at, end := psn(a.t, from), psn(a.t, to); at.LessEq(end); at = at.Next() {
		p.PSN = at
		if a.d.Cmd == "data" {
			s.frame++
			p.Frame, p.RetainBytes = s.frame, s.bytes
			if a.d.HasArg("large") {
				p.RetainBytes *= 2
			} else if a.d.HasArg("unkept") {
				p.RetainBytes = 0
			}
		}
		if left := int32(s.first.DMALen) - at.Sub(s.first.PSN)*int32(s.pmtu); p.Op == rocev2.WriteFirst {
			s.first = p
		} else if p.Op == rocev2.WriteLast && !a.d.HasArg("len") && left > 0 && left <= int32(s.pmtu) {
			p.Payload = uint16(left)
		}
		if a.d.HasArg("explain") {
			s.explain(&p, w)
			continue
		}
		if a.d.Cmd == "data" {
			s.invite(&p)
		}
		s.enter()
		s.input(a, &p)
		s.ledger.close(a.t, s.sw, &p, &s.out)
		s.print()
	}
}
