// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/gleam-rdma/gleam/api"
)

// naming is one time that the switch has named a member as the one that slows the group down.
type naming struct {
	member string        // name of the host
	by     string        // what has named it: slowed_by, slow, or the kind of an event
	cause  string        // the cause of slow; "" elsewhere
	after  time.Duration // the time since the fault began
}

// run is what one run of a cell has shown.
type run struct {
	guilty  string // name of a host; "": nobody
	named   []naming
	waits   map[string]int // samples in which the group waited for a host
	goodput float64        // the goodput of the source, bytes a second
	lab     float64        // CPUs that the hosts' programs and gleamd used
	members []api.Member   // the members at the last look
	others  float64        // CPUs that all other programs used
}

// namesGuilty returns when the guilty member was named first.
func (r *run) namesGuilty() (after time.Duration, ok bool) {
	for _, n := range r.named {
		if n.member == r.guilty {
			return n.after, true
		}
	}
	return 0, false
}

// innocents are those that were named and are not guilty.
func (r *run) innocents() (list []naming) {
	for _, n := range r.named {
		if n.member != r.guilty {
			list = append(list, n)
		}
	}
	return list
}

// causeIs reports whether the guilty member was named with this cause, and not more often with others.
func (r *run) causeIs(want string) bool {
	right, wrong := 0, 0
	for _, n := range r.named {
		switch {
		case n.member != r.guilty:
		case n.cause == want, want == "no answer" && saysItself[n.by]:
			right++
		case n.cause != "":
			wrong++
		}
	}
	return right > 0 && right >= wrong
}

// row is a line of the table: a cell with its runs.
type row struct {
	cell
	runs []run
}

// share is the part of the runs for which something holds, in percent.
func (r *row) share(holds func(*run) bool) float64 {
	n := 0
	for i := range r.runs {
		if holds(&r.runs[i]) {
			n++
		}
	}
	return 100 * float64(n) / float64(len(r.runs))
}

func (r *row) guilty() float64 {
	return r.share(func(x *run) bool { _, ok := x.namesGuilty(); return ok })
}

func (r *row) innocents() float64 {
	return r.share(func(x *run) bool { return len(x.innocents()) > 0 })
}

func (r *row) cause() float64 {
	return r.share(func(x *run) bool { return x.causeIs(r.fault.cause) })
}

// The bounds of the decision, in percent.
const (
	leastGuilty   = 95
	mostInnocents = 0
)

// verdict returns what is wrong with a row, "" if nothing is.
func (r *row) verdict() string {
	var wrong []string
	if r.fault.cause != "" && r.guilty() < leastGuilty {
		wrong = append(wrong, "GUILTY NOT NAMED")
	}
	if r.innocents() > mostInnocents {
		wrong = append(wrong, "INNOCENT NAMED")
	}
	return strings.Join(wrong, ", ")
}

// middle is the median.
func middle(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	slices.Sort(xs)
	return xs[len(xs)/2]
}

// write writes the rows as a table.
func write(w io.Writer, rows []row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FAULT\tSOURCE\tRUNS\tMBIT/S\tGUILTY\tINNOCENT\tCAUSE\tNAMED AFTER\tWAITS FOR ONE\tCPUS\tOF OTHERS\tVERDICT")
	for i := range rows {
		r := &rows[i]
		var rate, own, cpus, after, one []float64
		for k := range r.runs {
			x := &r.runs[k]
			rate, own, cpus = append(rate, x.goodput*8/1e6), append(own, x.lab), append(cpus, x.others)
			if d, ok := x.namesGuilty(); ok {
				after = append(after, d.Seconds())
			}
			most, all := 0, 0
			for _, n := range x.waits {
				most, all = max(most, n), all+n
			}
			one = append(one, 100*float64(most)/float64(max(all, 1)))
		}
		guilty, cause, named, verdict := "-", "-", "-", r.verdict()
		if r.fault.cause != "" {
			guilty, cause = fmt.Sprintf("%.0f %%", r.guilty()), fmt.Sprintf("%.0f %%", r.cause())
		}
		if len(after) > 0 {
			named = fmt.Sprintf("%.1f s", middle(after))
		}
		if verdict == "" {
			verdict = "ok"
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%.1f\t%s\t%.0f %%\t%s\t%s\t%.0f %%\t%.2f\t%.2f\t%s\n", r.fault.name, r.shape.name, len(r.runs), middle(rate), guilty, r.innocents(), cause, named, middle(one), middle(own), middle(cpus), verdict)
	}
	return t.Flush()
}

// TestVerdict: the table fails for a guilty member that is not named, and for an innocent one that is.
func TestVerdict(t *testing.T) {
	lost := cell{&faults[0], &shapes[0]}
	well := cell{&faults[len(faults)-1], &shapes[0]}
	stopped := cell{&faults[5], &shapes[0]}
	b, c := naming{member: "b", by: "slow", cause: "loss"}, naming{member: "c", by: "slowed_by"}
	repeat := func(n int, r run) (list []run) { return slices.Repeat([]run{r}, n) }
	for _, x := range []struct {
		name    string
		row     row
		verdict string
		cause   float64
	}{
		{"named", row{lost, repeat(20, run{guilty: "b", named: []naming{b}})}, "", 100},
		{"named in 19 of 20", row{lost, append(repeat(19, run{guilty: "b", named: []naming{b}}), run{guilty: "b"})}, "", 95},
		{"named in 18 of 20", row{lost, append(repeat(18, run{guilty: "b", named: []naming{b}}), run{guilty: "b"}, run{guilty: "b"})}, "GUILTY NOT NAMED", 90},
		{"an innocent, too", row{lost, append(repeat(19, run{guilty: "b", named: []naming{b}}), run{guilty: "b", named: []naming{b, c}})}, "INNOCENT NAMED", 100},
		{"an innocent alone", row{lost, []run{{guilty: "b", named: []naming{c}}}}, "GUILTY NOT NAMED, INNOCENT NAMED", 0},
		{"nobody is guilty", row{well, repeat(20, run{})}, "", 0},
		{"nobody is guilty, and one is named", row{well, append(repeat(19, run{}), run{named: []naming{c}})}, "INNOCENT NAMED", 0},
		{"another cause", row{lost, []run{{guilty: "b", named: []naming{{member: "b", by: "slow", cause: "slow link"}}}}}, "", 0},
		{"a stall says it", row{stopped, []run{{guilty: "b", named: []naming{{member: "b", by: "stalled"}}}}}, "", 100},
	} {
		if got := x.row.verdict(); got != x.verdict {
			t.Errorf("%s: %q, want %q", x.name, got, x.verdict)
		}
		if got := x.row.cause(); x.row.fault.cause != "" && got != x.cause {
			t.Errorf("%s: the cause is right in %v %%, want %v", x.name, got, x.cause)
		}
	}
}
