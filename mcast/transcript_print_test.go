// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"strings"

	"github.com/gleam-rdma/gleam/rocev2"
)

// print writes the output of the last call in the form of transcripts.
func (s *transcript) print(w *strings.Builder) {
	o := &s.out
	if o.NeedVerify {
		fmt.Fprintln(w, "verify")
	}
	s.printOrders(w)
	if len(o.Copies) > 0 {
		fmt.Fprint(w, "copy")
		for _, c := range o.Copies {
			fmt.Fprintf(w, " %s:%06x", s.legs[c.Leg], uint32(c.PSN))
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
			if len(set) > 0 {
				fmt.Fprintf(w, "(%s)", strings.Join(set, " "))
			}
		}
		fmt.Fprintln(w)
	}
	for i, p := range o.Probes {
		sep := " "
		if i == 0 {
			sep = "probe "
		}
		fmt.Fprintf(w, "%s%s:%06x", sep, s.legs[p.Leg], uint32(p.PSN))
		if i == len(o.Probes)-1 {
			fmt.Fprintln(w)
		}
	}
	for _, f := range o.Feedback {
		becn, tag := "", ""
		if g := s.sw.group(0); g != nil && !g.legs[g.members[f.To].leg].connected() {
			tag = fmt.Sprintf(" tag=%x", uint32(f.MSN))
		}
		if f.BECN && f.Op != rocev2.CNP {
			becn = " becn"
		}
		switch k := f.Syndrome.Kind(); {
		case f.Op == rocev2.CNP:
			fmt.Fprintf(w, "CNP to %s\n", nameOf(f.To))
		case k == rocev2.KindACK:
			if f.Syndrome != rocev2.SyndromeACK {
				fmt.Fprintf(w, "credit code %#x: ", uint8(f.Syndrome))
			}
			if tag == "" {
				tag = fmt.Sprintf(" msn=%d", f.MSN)
			}
			fmt.Fprintf(w, "ACK %06x%s to %s%s\n", uint32(f.PSN), tag, nameOf(f.To), becn)
		case k == rocev2.KindRNR:
			fmt.Fprintf(w, "RNR %06x code=%d%s to %s%s\n", uint32(f.PSN), f.Syndrome&31, tag, nameOf(f.To), becn)
		default:
			fmt.Fprintf(w, "NAK %06x %#x%s to %s%s\n", uint32(f.PSN), uint8(f.Syndrome), tag, nameOf(f.To), becn)
		}
	}
	printEvents(w, o.Events)
	if o.Drop != None {
		fmt.Fprintf(w, "drop: %v\n", o.Drop)
	}
	if o.Retained {
		fmt.Fprintln(w, "kept")
	}
	if len(o.Freed) > 0 {
		fmt.Fprintf(w, "released: %d\n", len(o.Freed))
	}
	if !s.manual {
		s.talk(o)
		return
	}
	for i := range o.Reports {
		printReport(w, &o.Reports[i])
	}
}
