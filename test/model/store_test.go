// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestStoredStatesGoOn walks at random, in one world that is never stored and in
// one that is stored and restored at every step: both come to the same. So
// what AppendState leaves out influences nothing that these scenarios see.
func TestStoredStatesGoOn(t *testing.T) {
	walks := 60
	if raceEnabled {
		walks = 3
	}
	for _, cfg := range append(Tiny(), Full()...) {
		live, err := NewWorld(&cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := NewWorld(&cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		first := live.encode(nil)
		for seed := range uint64(walks) {
			rng := rand.New(rand.NewPCG(seed, 1))
			live, err = NewWorld(&cfg, nil)
			if err != nil {
				t.Fatal(err)
			}
			enc := first
			for step := range 200 {
				as := live.actions(nil)
				if len(as) == 0 {
					break
				}
				a := as[rng.IntN(len(as))]
				live.do(a)
				stored.decode(enc)
				stored.do(a)
				if live.wrong != nil || stored.wrong != nil {
					t.Fatalf("%s, seed %d, step %d: %v, stored %v", cfg.Name, seed, step, live.wrong, stored.wrong)
				}
				enc = stored.encode(nil)
				if want := live.encode(nil); !bytes.Equal(enc, want) {
					t.Fatalf("%s, seed %d, step %d (%#x):\nlive   %x\nstored %x", cfg.Name, seed, step, a, want, enc)
				}
			}
		}
	}
}

// TestVisitedKeepsEverything puts more states into the set than its first
// slots hold, and finds the way back from each.
func TestVisitedKeepsEverything(t *testing.T) {
	v := newVisited()
	const n = 100_000
	rng := rand.New(rand.NewPCG(1, 2))
	hashes := []uint64{rng.Uint64() | 1}
	v.add(hashes[0], 0, 0, 0)
	for i := 1; i < n; i++ {
		h := rng.Uint64() | 1
		if !v.add(h, hashes[(i-1)/2], action(i), i) {
			t.Fatalf("state %d is not new", i)
		}
		if v.add(h, 7, 7, 7) {
			t.Fatalf("state %d is new again", i)
		}
		v.setNext(h, [schedules]uint64{h, h + 1})
		hashes = append(hashes, h)
	}
	if v.len() != n {
		t.Errorf("%d of %d states", v.len(), n)
	}
	for i, h := range hashes {
		e := v.get(h)
		if i > 0 && (e.step != action(i) || e.next != [schedules]uint64{h, h + 1}) {
			t.Fatalf("state %d is %+v", i, e)
		}
		as := v.path(h)
		for k, j := len(as)-1, i; j > 0; k, j = k-1, (j-1)/2 {
			if as[k] != action(j) {
				t.Fatalf("the way to state %d is %v", i, as)
			}
		}
	}
}

// TestSearchIsRepeatable: neither the workers nor the hash's seed change what
// is found.
func TestSearchIsRepeatable(t *testing.T) {
	cfg := Tiny()[0]
	var first string
	if raceEnabled {
		cfg = Tiny()[slices.IndexFunc(Tiny(), func(c Config) bool { return c.Name == "turns-rack" })]
	}
	for _, workers := range []int{1, 2, 3} {
		r, err := Search(&cfg, Options{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		r.Elapsed, r.Bytes = time.Duration(0), 0
		got := fmt.Sprintf("%+v", r)
		if first == "" {
			first = got
		}
		if got != first {
			t.Errorf("%d workers: %s\nbefore: %s", workers, got, first)
		}
	}
}

// TestSearchStopsAtItsBound: a bounded search says that it is not complete, and
// follows the fair runs that it can.
func TestSearchStopsAtItsBound(t *testing.T) {
	cfg := Tiny()[0]
	r, err := Search(&cfg, Options{MaxStates: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if r.Complete || r.States < 1000 || r.States > 10_000 || r.FairRuns >= r.States || r.Violation != nil {
		t.Errorf("%+v", r)
	}
}

func TestConfigsThatCannotBe(t *testing.T) {
	if _, err := Search(&Config{Name: "x", Receivers: 2, SendWindow: -1, Messages: []int{1}}, Options{}); err == nil {
		t.Error("a negative window")
	}
}
