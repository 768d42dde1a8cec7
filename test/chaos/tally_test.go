// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// tally counts.
type tally struct {
	counts map[string]int
	faults map[string]*row
	heal   time.Duration // the longest from the last fault to a transfer of a new group
	wrongs []string      // broken promises
}

// row is what is counted of a kind of faults.
type row struct {
	times, during int
	stall         time.Duration // the longest without a completion, since the last fault began, while nothing was missing
}

func newTally() *tally {
	t := &tally{counts: make(map[string]int), faults: make(map[string]*row)}
	for _, k := range kinds {
		t.faults[k] = &row{}
	}
	return t
}

func (t *tally) add(o *tally) {
	for k, n := range o.counts {
		t.counts[k] += n
	}
	t.heal, t.wrongs = max(t.heal, o.heal), append(t.wrongs, o.wrongs...)
	for k, x := range o.faults {
		y := t.faults[k]
		y.times, y.during, y.stall = y.times+x.times, y.during+x.during, max(y.stall, x.stall)
	}
}

func (t *tally) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(t.counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", t.counts[k], k))
	}
	return strings.Join(parts, ", ")
}

// table has a line for each kind of faults, and one for each broken promise: the end of the output, as CI shows it, has them.
func (t *tally) table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FAULT\tTIMES\tCOMPLETIONS DURING\tLONGEST STALL AFTER, S")
	for _, k := range kinds {
		x := t.faults[k]
		fmt.Fprintf(w, "%s\t%d\t%d\t%.2f\n", k, x.times, x.during, x.stall.Seconds())
	}
	w.Flush()
	fmt.Fprintf(&b, "the longest from the last fault of a round to a transfer of a new group: %.2f s\n", t.heal.Seconds())
	return b.String() + strings.Join(t.wrongs, "\n")
}

// count adds one to a count.
func (r *round) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[what]++
}

// begins notes that a fault begins. The faults of the fabric, which are not harmless, come one after the other.
func (r *round) begins(f *fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.going, r.last = append(r.going, f), f.kind
	r.faults[f.kind].times++
	if !f.harmless {
		r.broken = append(r.broken, span{from: time.Now()})
	}
}

func (r *round) ends(f *fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.going = slices.DeleteFunc(r.going, func(x *fault) bool { return x == f })
	if !f.harmless {
		r.broken[len(r.broken)-1].to = time.Now()
	}
}

// completed counts completions that came so long after the ones before.
func (r *round) completed(n int, stall time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts["messages"] += n
	for _, f := range r.going {
		r.faults[f.kind].during += n
	}
	if r.last != "" {
		x := r.faults[r.last]
		x.stall = max(x.stall, stall)
	}
}

// healed notes how long after the last fault a new group has transferred.
func (r *round) healed(took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heal = max(r.heal, took)
}

// span is from a fault to its end; without an end it lasts.
type span struct{ from, to time.Time }

// wholeFor returns for how long nothing has been missing.
func (r *round) wholeFor() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.broken); n > 0 {
		if r.broken[n-1].to.IsZero() {
			return 0
		}
		return time.Since(r.broken[n-1].to)
	}
	return time.Since(r.begin)
}

// brokenSince returns for how long something has been missing since a time.
func (r *round) brokenSince(since time.Time) (d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.broken {
		if s.to.IsZero() {
			s.to = time.Now()
		}
		if s.from.Before(since) {
			s.from = since
		}
		d += max(0, s.to.Sub(s.from))
	}
	return d
}
