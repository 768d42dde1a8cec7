// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// explained compares the explanations of all packets of a transcript with what happens, and
// collects the rules that they name.
type explained struct {
	rules map[string]bool
	texts []string
}

// check explains p of a clone of sw, and returns a check for the same call of sw itself.
func (x *explained) check(t *testing.T, sw *Switch, now time.Duration, p *Packet, out *Output) (after func()) {
	t.Helper()
	if p.Group != groupIP {
		return func() {}
	}
	clone, untouched := sw.Group(0).Clone(), sw.Group(0).Clone()
	if clone == nil {
		return func() {}
	}
	checkApart(t, sw.groups[0], clone.groups[0])
	if ack := sw.Group(0).Clone().Group(0).ExplainACK(now); len(ack.Steps) == 0 {
		t.Errorf("nothing is said about the next ACK")
	} else {
		x.note(ack.Steps)
		for _, w := range ack.Waits {
			x.note(w.Why)
			if len(w.Why) == 0 || len(w.Ends) == 0 {
				t.Errorf("wait without cause or end: %+v", w)
			}
			for _, e := range w.Ends {
				x.note([]Step{e.Step})
			}
		}
	}
	said := Output{MaxResends: out.MaxResends, PortRoom: out.PortRoom}
	e := clone.Group(0).Explain(now, p, &said)
	x.note(e.Steps)
	if a, b := untouched.AppendState(nil, now), sw.Group(0).Clone().AppendState(nil, now); !slices.Equal(a, b) {
		t.Errorf("the explanation has changed the switch")
	}
	if len(e.Steps) == 0 {
		t.Errorf("nothing is said about %+v", p)
	}
	if said.NeedRevoke || said.NeedVerify != e.BadICRC {
		t.Errorf("%+v is not served to its end: %+v", p, e)
	}
	return func() {
		if out.NeedVerify { // p is not verified
			if !e.BadICRC {
				t.Errorf("the ICRC is asked for: %+v", e)
			}
			return
		}
		if out.NeedRevoke {
			return // the driver makes other calls first
		}
		if e.Reason != out.Drop {
			t.Errorf("reason %v is said, it is %v", e.Reason, out.Drop)
		}
		if out.Drop == None && len(out.Copies) != 0 && e.Verdict != VerdictForwarded && e.Verdict != VerdictRecorded && e.Verdict != VerdictHeld {
			t.Errorf("%v is said of a packet with copies", e.Verdict)
		}
		for _, c := range []struct{ is, said any }{
			{out.Copies, said.Copies}, {out.Feedback, said.Feedback}, {out.Events, said.Events}, {out.Reports, said.Reports}, {out.Retained, said.Retained}, {out.Freed, said.Freed},
		} {
			if fmt.Sprint(c.is) != fmt.Sprint(c.said) {
				t.Errorf("%+v is said, it is %+v", c.said, c.is)
			}
		}
		if a, b := clone.AppendState(nil, now), sw.Group(0).Clone().AppendState(nil, now); !slices.Equal(a, b) {
			t.Errorf("the clone differs after the packet")
		}
	}
}

func (x *explained) note(steps []Step) {
	for _, s := range steps {
		x.texts = append(x.texts, s.Text)
		for _, r := range s.Rules {
			x.rules[r] = true
		}
	}
}

// TestExplainTranscripts explains each packet of each transcript before it is served: what is
// said happens, the group itself does not change, and the rule that a transcript is named after
// is among those that are named.
func TestExplainTranscripts(t *testing.T) {
	files, _ := filepath.Glob("testdata/R*")
	if len(files) < 100 {
		t.Fatalf("%d transcripts", len(files))
	}
	all, named, anywhere, inFile := ruleNames(), map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, f := range files {
		if s, err := os.Stat(f); err != nil || s.IsDir() {
			continue
		}
		t.Run(filepath.Base(f), func(t *testing.T) {
			x := &explained{rules: map[string]bool{}}
			runExplained(t, f, x)
			rule, _, _ := strings.Cut(filepath.Base(f), "_")
			inFile[rule] = true
			named[rule] = named[rule] || x.rules[rule]
			for r := range x.rules {
				anywhere[r] = true
				if !all[r] {
					t.Errorf("%s is no rule of docs/AGGREGATION.md", r)
				}
			}
			for _, s := range x.texts {
				if strings.Contains(s, "%!") || !strings.HasSuffix(s, ".") {
					t.Errorf("text %q", s)
				}
			}
		})
	}
	for _, r := range slices.Sorted(maps.Keys(all)) {
		is := named[r] || !inFile[r] && anywhere[r]
		if why, ok := notOfPackets[r]; is == ok {
			t.Errorf("rule %s: an explanation names it: %v; the table of rules that none does says: %q", r, is, why)
		}
	}
}

// runExplained runs a transcript, and explains its packets.
func runExplained(t *testing.T, file string, x *explained) {
	s := &transcript{sw: New(Limits{}), explained: x}
	datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string { return s.command(t, d) })
}

// notOfPackets are the rules that explanations of their own transcripts do not name, and why.
var notOfPackets = map[string]string{
	"R04":  "how PSNs compare",
	"R35":  "updates of the members",
	"R49":  "when frames are freed",
	"R60":  "the order in which members are removed",
	"R62":  "when the memory of a NAK ends",
	"R70":  "room at ports, which a clone does not know",
	"R79":  "when a turn does not end",
	"R81":  "the cost of deadlines",
	"R82":  "memory of idle groups",
	"R88":  "deletion of a group",
	"R90":  "updates of the tree",
	"R93":  "how lag limits grow with levels",
	"R95":  "how many packets go to another switch at a time",
	"R98":  "when the driver opens gates",
	"R100": "how long a restarted switch waits",
	"R101": "restarts in a tree",
	"R105": "questions between switches",
	"R111": "reports between switches",
	"R113": "how the fast path counts ACKs",
	"R114": "what the fast path does not report",
	"R109": "gaps from before a restart",
	"R115": "restarts in a tree",
}

// checkApart fails if a group and its clone share memory that can change.
func checkApart(t *testing.T, a, b *group) {
	t.Helper()
	shared := map[uintptr]string{}
	walkPointers(reflect.ValueOf(a), "group", map[uintptr]bool{}, func(p uintptr, path string) { shared[p] = path })
	walkPointers(reflect.ValueOf(b), "group", map[uintptr]bool{}, func(p uintptr, path string) {
		if was, ok := shared[p]; ok {
			t.Errorf("a clone shares %s with the group (%s)", path, was)
		}
	})
}

// walkPointers visits all pointers, slices and maps that are reached from v.
func walkPointers(v reflect.Value, path string, seen map[uintptr]bool, visit func(p uintptr, path string)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map:
		if v.IsNil() || seen[v.Pointer()] {
			return
		}
		seen[v.Pointer()] = true
		visit(v.Pointer(), path)
		if v.Kind() == reflect.Pointer {
			walkPointers(v.Elem(), path, seen, visit)
		}
	case reflect.Interface:
		if !v.IsNil() {
			walkPointers(v.Elem(), path, seen, visit)
		}
	case reflect.Slice:
		if v.Cap() == 0 {
			return
		}
		visit(v.Pointer(), path)
		for i := range v.Len() {
			walkPointers(v.Index(i), fmt.Sprintf("%s[%d]", path, i), seen, visit)
		}
	case reflect.Array:
		for i := range v.Len() {
			walkPointers(v.Index(i), fmt.Sprintf("%s[%d]", path, i), seen, visit)
		}
	case reflect.Struct:
		if v.Type().PkgPath() == "net/netip" { // a zone is interned, and does not change
			return
		}
		for i := range v.NumField() {
			walkPointers(v.Field(i), path+"."+v.Type().Field(i).Name, seen, visit)
		}
	}
}
