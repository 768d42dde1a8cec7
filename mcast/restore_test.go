// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"bytes"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/cockroachdb/datadriven"
	"github.com/gleam-rdma/gleam/mcast/token"
	"github.com/gleam-rdma/gleam/rocev2"
	"pgregory.net/rapid"
)

// A switch whose state is encoded, overwritten with random values and restored, before
// each call. It behaves as if nothing had happened: the encoding is all of the state that
// has an influence.

// restore encodes the state of s, overwrites it, and sets it again; sometimes twice: then
// all fields have the same values both times, as SetState has set them.
func restore(t fatalReporter, s *Switch, now time.Duration, rng func(int) int) {
	enc := s.AppendState(nil, now)
	first, times := "", 1
	if rng(5) == 0 {
		times = 2
	}
	for range times {
		scramble(s, rng)
		if rest, err := s.SetState(enc, now); err != nil || len(rest) > 0 {
			t.Fatalf("SetState of AppendState at %v: %d bytes left, %v", now, len(rest), err)
		}
		if again := s.AppendState(nil, now); !bytes.Equal(again, enc) {
			t.Fatalf("the encoding at %v is not restored:\n%x\n%x", now, enc, again)
		}
		if times == 1 {
			return
		}
		var w strings.Builder
		settled(&w, "groups", reflect.ValueOf(s.groups))
		if s.anyVerifies() {
			settled(&w, "departures", reflect.ValueOf(&s.departures))
		}
		fmt.Fprintln(&w, "used", s.repair.used)
		if first == "" {
			first = w.String()
		} else if second := w.String(); first != second {
			t.Fatalf("SetState at %v leaves a field as it is: %s", now, difference(first, second))
		}
	}
}

// difference returns the first line of a that b does not have at the same place, and
// b's line.
func difference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return x[i] + " and " + y[i]
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}

// settled writes the values of all fields of v that SetState sets. Rings are left out:
// some of their entries are not in use.
func settled(w *strings.Builder, name string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			settled(w, name, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			if v.Type() != reflect.TypeFor[[]messageEnd]() {
				settled(w, name, v.Index(i))
			}
		}
	case reflect.Array:
	case reflect.Struct:
		for i := range v.NumField() {
			switch f := v.Type().Field(i); kindOf(f) {
			case "constant", "ignored":
			case "":
				fmt.Fprintf(w, "%s %v\n", name, v)
				return
			default:
				settled(w, v.Type().String()+"."+f.Name, v.Field(i))
			}
		}
	default:
		fmt.Fprintf(w, "%s %v\n", name, v)
	}
}

// scramble overwrites all parts of the state that SetState has to restore.
func scramble(s *Switch, rng func(int) int) {
	for _, g := range s.groups {
		if g == nil {
			continue
		}
		s.timers.arm(g.id, -time.Hour)
		for _, part := range []any{&g.src, &g.fwd, &g.agg, &g.recv, &g.lag, &g.live, &g.turn, &g.cnp, &g.failure, &g.refusal, &g.gates, &g.due} {
			overwrite(reflect.ValueOf(part).Elem(), rng)
		}
		for _, part := range []any{g.acks, g.activity, g.legs, g.members} {
			overwrite(reflect.ValueOf(part), rng)
		}
		if g.extra != nil {
			overwrite(reflect.ValueOf(g.extra).Elem(), rng)
		}
		if g.numbering.interval > 0 {
			overwrite(reflect.ValueOf(&g.numbering).Elem(), rng)
		}
		if g.repair.store != nil {
			overwrite(reflect.ValueOf(&g.repair).Elem(), rng)
		}
		if g.repair.store != nil || g.live.deadAfterMax > 0 {
			overwrite(reflect.ValueOf(&g.rtt).Elem(), rng)
		}
	}
	if s.anyVerifies() {
		overwrite(reflect.ValueOf(&s.departures).Elem(), rng)
	}
	s.repair.used = int64(rng(1 << 20))
}

// overwrite sets v, or the fields of v, to random values: those that are encoded, and
// those that follow from them.
func overwrite(v reflect.Value, rng func(int) int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			overwrite(v.Elem(), rng)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			overwrite(v.Index(i), rng)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			switch kindOf(v.Type().Field(i)) {
			case "constant", "ignored":
			case "":
				if t := v.Type(); t == reflect.TypeFor[rocev2.AddrKey]() || t == reflect.TypeFor[token.Report]() {
					overwrite(v.Field(i), rng)
				}
			default:
				overwrite(v.Field(i), rng)
			}
		}
	default:
		v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem() // fields are not exported
		switch x := rng(1 << 30); {
		case v.Kind() == reflect.Bool:
			v.SetBool(x&1 != 0)
		case v.CanInt():
			v.SetInt(int64(x) - 1<<29)
		default:
			v.SetUint(uint64(x))
		}
	}
}

// TestStateIsAllThatCounts: the transcripts have the same output if the state is restored
// before each call.
func TestStateIsAllThatCounts(t *testing.T) {
	files, err := filepath.Glob("testdata/[A-Z]*")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			s, rng := &transcript{sw: New(Limits{})}, random(1)
			datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
				if s.before = nil; d.Cmd != "pause" { // a pause is of the time before
					s.before = func() { restore(t, s.sw, s.now, rng) }
				}
				return s.command(t, d)
			})
		})
	}
}

// TestStateIsAllThatCountsInANetwork: random runs end as they have to if the state is
// restored before some of the calls.
func TestStateIsAllThatCountsInANetwork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNetwork(t, 0, 3, 30) // at 100 a source's retries may run out by chance, while a probe of the last receiver is lost each time
		n.verify, n.restores = rapid.Bool().Draw(t, "verify"), true
		members := rapid.IntRange(4, 6).Draw(t, "members")
		if rapid.Bool().Draw(t, "mute") {
			n.silenced = members - 1
		}
		n.build(members, rapid.IntRange(1, 3).Draw(t, "sources"), 0)
		n.churn(n.rng(3), n.rng(3), 5*time.Millisecond)
		n.run()
	})
}
