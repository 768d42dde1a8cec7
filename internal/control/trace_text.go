// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"strings"
	"sync"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/dataplane/trace"
	"github.com/gleam-rdma/gleam/rocev2"
)

// sentence is what a recorded packet is, in parts, with the rules of docs/AGGREGATION.md.
type sentence struct {
	parts []string
	rules []string
}

func (s *sentence) add(format string, args ...any) {
	s.parts = append(s.parts, fmt.Sprintf(format, args...))
}

// by adds rules, each once.
func (s *sentence) by(rules ...string) {
	for _, r := range rules {
		if r != "" && !strings.Contains(" "+strings.Join(s.rules, " ")+" ", " "+r+" ") {
			s.rules = append(s.rules, r)
		}
	}
}

// traceText returns what the switch has done to a recorded packet, and the rules for it.
func traceText(x *trace.Record) (text string, rules []string) {
	var s sentence
	switch x.Kind {
	case trace.Received:
		s.received(x)
	case trace.Copied, trace.Resent, trace.NotSent:
		s.copied(x)
	case trace.Built:
		s.built(x)
	}
	return strings.Join(s.parts, ", "), s.rules
}

// places say where the PSN of received data lies.
var places = [...]string{
	trace.NoPlace: "", trace.Next: "new data of the source", trace.Ahead: "data behind a gap", trace.Again: "data that the source sends again",
	trace.Acked: "data that all receivers have", trace.OtherSource: "data of a member that is not the source",
}

func (s *sentence) received(x *trace.Record) {
	switch {
	case x.IsRoCE && x.Op == rocev2.Acknowledge:
		s.add("%s from %s", syndromeText(x.Syndrome), x.Src)
		if x.WasPSN != x.PSN && x.WasPSN != 0 {
			s.add("PSN 0x%06x as the source counts", uint32(x.WasPSN))
			s.by("R18")
		}
	case x.IsRoCE && x.Op == rocev2.CNP:
		s.add("congestion notification from %s", x.Src)
	case x.IsRoCE && x.Place == trace.OtherSource && x.Copies > 0:
		s.add("data of a member that becomes the source")
		s.by("R17")
	case x.IsRoCE && places[x.Place] != "":
		s.add("%s", places[x.Place])
	case x.IsRoCE:
		s.add("a packet for a group")
	case x.UDPPort != 0:
		s.add("a datagram for UDP port %d", x.UDPPort)
	default:
		s.add("a packet for the switch itself")
	}
	if x.Drop != "" {
		s.dropped("not served", x.Drop)
	}
	if x.Copies > 0 {
		s.add("%s", count(x.Copies, "copy", "copies"))
	}
	if x.Resent > 0 {
		s.add("%s from the repair store", count(x.Resent, "packet", "packets"))
		s.by("R43")
	}
	if x.Feedback > 0 {
		s.add("%s of the switch itself", count(x.Feedback, "packet", "packets"))
	}
	if x.Flags&trace.Retained != 0 {
		s.add("in the repair store")
		s.by("R42")
	}
	if x.Flags&trace.ByXDP != 0 {
		s.add("forwarded by XDP, whose copies are not seen here")
		s.by("R97")
	}
	if x.Reply != "" {
		s.dropped("an answer was not sent", x.Reply)
	}
}

func (s *sentence) copied(x *trace.Record) {
	to := "the next switch"
	if x.Member.IsValid() {
		to = x.Member.String()
	}
	what := "copy for " + to
	if x.Kind == trace.Resent {
		what = "repair for " + to + " from the store"
		s.by("R43")
	}
	if x.Kind == trace.NotSent {
		what += " not sent"
	}
	s.add("%s", what)
	switch {
	case x.Kind == trace.NotSent && x.Flags&trace.Deferred != 0:
		s.add("it waits in the repair store until the port has room")
		s.by("R51")
	case x.Kind == trace.NotSent:
		s.dropped("dropped", x.Drop)
	case x.Flags&trace.Translated == 0:
		s.add("addresses and PSN of the source")
		s.by("R24")
	default:
		s.add("QPN 0x%06x -> 0x%06x", uint32(x.WasQP), uint32(x.DestQP))
		s.add("PSN 0x%06x -> 0x%06x", uint32(x.WasPSN), uint32(x.PSN))
		s.by("R18")
	}
	if x.Kind == trace.NotSent {
		return
	}
	if x.Flags&trace.NewAddress != 0 {
		s.add("VA 0x%x -> 0x%x with the receiver's R_Key", x.WasVA, x.VA)
		s.by("R27")
	}
	if x.Flags&trace.Emptied != 0 {
		s.add("a WRITE of no bytes in the place of a target message")
		s.by("R41")
	}
	if x.Flags&trace.AsksACK != 0 {
		s.add("the switch asks for an ACK")
		s.by("R45")
	}
}

func (s *sentence) built(x *trace.Record) {
	switch {
	case x.IsRoCE && x.Op == rocev2.Acknowledge:
		s.add("%s to %s in the name of all receivers", syndromeText(x.Syndrome), x.Dst)
		switch x.Syndrome.Kind() {
		case rocev2.KindACK:
			s.by("R01", "R20")
		case rocev2.KindSequence:
			s.by("R14")
		case rocev2.KindRNR:
			s.by("R19")
		case rocev2.KindFatal:
			s.by("R25")
		default:
			s.by("R106")
		}
	case x.IsRoCE && x.Op == rocev2.CNP:
		s.add("congestion notification to the source")
		s.by("R32")
	case x.IsRoCE:
		s.add("probe that makes %s say which PSN it expects", x.Dst)
		s.by("R52")
	case x.UDPPort != 0:
		s.add("a message of the switch, UDP port %d", x.UDPPort)
	default:
		s.add("an answer of the switch")
	}
	if x.Flags&trace.Replaced != 0 {
		s.add("not sent, as a later ACK of the same batch says more")
	}
}

// syndromeText names the kind of an acknowledgement.
func syndromeText(y rocev2.Syndrome) string {
	switch y.Kind() {
	case rocev2.KindACK:
		return "ACK"
	case rocev2.KindSequence:
		return "NAK (sequence error)"
	case rocev2.KindRNR:
		return "RNR NAK"
	case rocev2.KindFatal:
		return fmt.Sprintf("fatal NAK 0x%02x", uint8(y))
	}
	return fmt.Sprintf("acknowledgement with syndrome 0x%02x", uint8(y))
}

func count(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

// reasonsByName are the reasons of the workers.
var reasonsByName = sync.OnceValue(func() map[string]dataplane.CountedReason {
	m := make(map[string]dataplane.CountedReason)
	for _, r := range dataplane.Reasons() {
		m[r.Name] = r
	}
	return m
})

// dropped adds a reason of docs/COUNTERS.md, with its explanation.
func (s *sentence) dropped(what, name string) {
	r := reasonsByName()[name]
	s.add("%s: %s (%s)", what, name, r.Text)
	s.by(r.Rules...)
}
