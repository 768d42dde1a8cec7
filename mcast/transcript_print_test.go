// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"strings"

	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/model/notation"
)

// print adds the output of the last call to the answer.
func (s *transcript) print() {
	o := &s.out
	var c notation.Call
	if o.NeedVerify {
		c.First = append(c.First, "verify")
	}
	c.First = append(c.First, s.orderLines()...)
	events := eventLines(o.Events)
	if len(o.Events) > 0 && o.Events[0].Kind == SourceChanged {
		c.First, events = append(c.First, events[0]), events[1:]
	}
	for i := range o.Copies {
		c.Copies = append(c.Copies, notation.Copy{Leg: s.legs[o.Copies[i].Leg], PSN: o.Copies[i].PSN, Set: setBy(&o.Copies[i])})
	}
	var probes []notation.Copy
	for _, p := range o.Probes {
		probes = append(probes, notation.Copy{Leg: s.legs[p.Leg], PSN: p.PSN})
	}
	if len(probes) > 0 {
		c.Then = append(c.Then, "probe "+notation.List(probes))
	}
	for i := range o.Feedback {
		c.Then = append(c.Then, s.feedbackLine(&o.Feedback[i]))
	}
	c.Then = append(c.Then, events...)
	if o.Drop != None {
		c.Then = append(c.Then, fmt.Sprintf("drop: %v", o.Drop))
	}
	if o.Retained {
		c.Kept = append(c.Kept, "kept")
	}
	if len(o.Freed) > 0 {
		c.Kept = append(c.Kept, fmt.Sprintf("released %d", len(o.Freed)))
	}
	if s.manual {
		for i := range o.Reports {
			c.Last = append(c.Last, reportLine(&o.Reports[i]))
		}
	} else {
		s.talk(o)
	}
	s.answer.Add(&c)
}

// setBy is what the switch sets in a copy.
func setBy(c *Copy) string {
	var set []string
	if c.Flags&SetRETH != 0 {
		set = append(set, fmt.Sprintf("va=%x", c.VA))
	}
	if c.Flags&(SetRETH|SetIETH) != 0 {
		set = append(set, fmt.Sprintf("rkey=%x", c.RKey))
	}
	if c.Flags&EmptyWrite != 0 {
		set = append(set, "empty")
	}
	if c.Flags&SetAckReq != 0 {
		set = append(set, "ar")
	}
	if len(set) == 0 {
		return ""
	}
	return "(" + strings.Join(set, " ") + ")"
}

func (s *transcript) feedbackLine(f *Feedback) string {
	becn, tag, psn := "", "", notation.PSN(f.PSN)
	if g := s.sw.group(0); g != nil && !g.legs[g.members[f.To].leg].connected() {
		tag = fmt.Sprintf(" tag=%x", uint32(f.MSN))
	}
	if f.BECN && f.Op != rocev2.CNP {
		becn = " becn"
	}
	switch k := f.Syndrome.Kind(); {
	case f.Op == rocev2.CNP:
		return "CNP to " + nameOf(f.To)
	case k == rocev2.KindACK:
		code := ""
		if f.Syndrome != rocev2.SyndromeACK {
			code = fmt.Sprintf("credit code %#x: ", uint8(f.Syndrome))
		}
		if tag == "" {
			tag = fmt.Sprintf(" msn=%d", f.MSN)
		}
		return fmt.Sprintf("%sACK %s%s to %s%s", code, psn, tag, nameOf(f.To), becn)
	case k == rocev2.KindRNR:
		return fmt.Sprintf("RNR %s code=%d%s to %s%s", psn, f.Syndrome&31, tag, nameOf(f.To), becn)
	default:
		return fmt.Sprintf("NAK %s %#x%s to %s%s", psn, uint8(f.Syndrome), tag, nameOf(f.To), becn)
	}
}
