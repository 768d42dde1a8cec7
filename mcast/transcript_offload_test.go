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

// The commands of transcripts of groups that may be offloaded:
//
//	data psn=5|5..9 forwarded    the fast path has forwarded these packets
//	offload                      the driver asks for the grant
//	acked B=5 C=4 [sent=4]       the fast path has counted an ACK of 5 from B and one of 4 from C, and has sent the source one of 4
//	covered psn=7 op=SendOnly ends=2 [sent=7]    all receivers have acknowledged the packets up to 7, in which two messages end, and which were not reported
//	leaves legs=2                why the fast path, which has two legs, leaves ACKs to the core
//	revoked                      the driver has taken the word back, and has reported everything
//	requeue leg=B psn=5 [+1ms]   the gate of B has let nothing from PSN 5 on pass; it goes on later

// fastPath is the argument fast= of a group.
func (a args) fastPath() (f FastPathSpec) {
	v := a.list("fast")
	if len(v) != 3 {
		return f
	}
	f.Slots = int(num(a.t, v[0], 10, 31))
	for i, at := range []*time.Duration{&f.Drain, &f.Backoff} {
		var err error
		if *at, err = time.ParseDuration(v[1+i]); err != nil {
			a.t.Fatal(err)
		}
	}
	return f
}

// input gives the switch a packet, or reports it.
func (s *transcript) input(a args, p *Packet) {
	if a.d.HasArg("forwarded") {
		s.sw.InputForwarded(s.now, 0, p, &s.out)
		return
	}
	if s.explained != nil {
		defer s.explained.check(a.t, s.sw, s.now, p, &s.out)()
	}
	s.sw.Input(s.now, p, &s.out)
}

func (s *transcript) offload(a args, w *strings.Builder) {
	switch a.d.Cmd {
	case "offload":
		g, ok := s.sw.Offload(s.now, 0, &s.out)
		if !ok {
			fmt.Fprintln(w, "not granted")
			return
		}
		fmt.Fprintf(w, "granted from %s to %s, mid-message %v\n", notation.PSN(g.Nxt), notation.PSN(g.Limit), g.MidMessage)
	case "acked":
		s.acked(a)
	case "covered":
		if !s.covered(a) {
			fmt.Fprintln(w, "not skipped")
			return
		}
	case "leaves":
		if why := s.sw.Group(0).OffloadACKs(a.int("legs", 0)); why != "" {
			fmt.Fprintln(w, "leaves ACKs to the core:", why)
		} else {
			fmt.Fprintln(w, "counts ACKs")
		}
		return
	case "revoked":
		s.sw.Revoked(s.now, 0, &s.out)
	case "requeue":
		leg := LegID(strings.Index(strings.Join(s.legs, ""), a.str("leg", "")))
		until := s.now
		for _, c := range a.d.CmdArgs {
			if d, err := time.ParseDuration(strings.TrimPrefix(c.Key, "+")); err == nil {
				until += d
			}
		}
		c := Copy{Leg: leg, PSN: (a.psn("psn") + rocev2.PSN(s.sw.group(0).acks[leg].delta)) & rocev2.PSNMask}
		fmt.Fprintf(w, "in the store: %v\n", s.sw.Requeue(&c, until))
		return
	}
	s.ledger.close(a.t, s.sw, nil, &s.out)
	s.print()
}

// acked tells the switch what the fast path has counted.
func (s *transcript) acked(a args) {
	var legs []LegACK
	sent := SentACK{PSN: s.sw.group(0).agg.acked}
	for _, c := range a.d.CmdArgs {
		if c.Key == "sent" {
			sent = SentACK{PSN: a.psn("sent"), Count: 1}
			continue
		}
		legs = append(legs, LegACK{Leg: LegID(slices.Index(s.legs, c.Key)), Acked: a.psn(c.Key), Count: 1, At: s.now})
	}
	s.ledger.counters.acksIn, s.ledger.counters.acksOut = uint64(len(legs)), uint64(sent.Count)
	s.sw.InputAcked(s.now, 0, legs, sent, &s.out)
	if n := uint64(len(legs)); s.out.Drop != None && n > 0 {
		s.ledger.counters.acksIn = n - 1
	}
}

// covered tells the switch of packets that all receivers have acknowledged.
func (s *transcript) covered(a args) bool {
	g := s.sw.group(0)
	sent := SentACK{PSN: g.agg.acked}
	if a.d.HasArg("sent") {
		sent = SentACK{PSN: a.psn("sent"), Count: 1}
	}
	last := Packet{Group: groupIP, DestQP: groupQPN, Op: opNames[a.str("op", "SendOnly")], PSN: a.psn("psn"), DMALen: uint32(a.hex("dma"))}
	c := Covered{Last: last, Ends: uint32(a.int("ends", 0))}
	var legs []LegACK
	for i := range g.acks {
		if g.acks[i].flags&isReceiver != 0 {
			legs = append(legs, LegACK{Leg: LegID(i), Acked: c.Last.PSN, Count: 1, At: s.now})
		}
	}
	n := max(c.Last.PSN.Sub(g.fwd.nxt)+1, 0)
	s.ledger.counters.acksIn, s.ledger.counters.acksOut, s.ledger.counters.covered = uint64(len(legs)), uint64(sent.Count), uint64(n)
	return s.sw.InputCovered(s.now, 0, &c, legs, sent, &s.out)
}

func (s *transcript) orderLines() (lines []string) {
	if s.out.NeedRevoke {
		lines = append(lines, "take it back first")
	}
	for _, o := range s.out.Orders {
		switch o.Kind {
		case AskOffload:
			lines = append(lines, "order: ask for the fast path")
		case Revoke:
			lines = append(lines, "order: revoke")
		case OpenGate:
			lines = append(lines, fmt.Sprintf("order: open the gate of %s at %s", s.legs[o.Leg], notation.PSN(o.Next)))
		case ShutGate:
			lines = append(lines, fmt.Sprintf("order: shut the gate of %s", s.legs[o.Leg]))
		}
	}
	return lines
}
