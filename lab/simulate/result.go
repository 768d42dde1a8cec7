// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gleam-rdma/gleam/lab/simulate/spec"
)

// Result is what one point of a sweep has given: a line of JSON.
type Result struct {
	Study   string            `json:"study,omitempty"`
	Vars    map[string]string `json:"vars,omitempty"`
	Address string            `json:"address"`
	Build   string            `json:"build"`
	Mode    string            `json:"mode"`              // how packets were simulated
	Partial bool              `json:"partial,omitempty"` // true: it was interrupted

	JCT      float64 `json:"jct_us"` // sum of the phases'
	Analytic float64 `json:"analytic_us,omitempty"`
	Phases   []Phase `json:"phases"`

	Wall       float64 `json:"wall_s"`
	HopsPerS   float64 `json:"hops_per_s"`
	Partitions int     `json:"partitions"`
	RSS        int64   `json:"max_rss_bytes"`
}

// Phase is the result of a phase.
type Phase struct {
	Name      string    `json:"name"`
	Mode      string    `json:"mode"`                // packets, or trains of them
	Displaced uint64    `json:"displaced,omitempty"` // packets that were in another order than without trains, or more
	JCT       float64   `json:"jct_us"`              // the time until the last byte is delivered
	Completed float64   `json:"completed_us"`        // the time until the last source has its completion
	Analytic  float64   `json:"analytic_us,omitempty"`
	Flows     int64     `json:"flows"`
	Done      int64     `json:"flows_completed"`
	Failed    int64     `json:"failed"`
	Events    uint64    `json:"events"`
	Hops      uint64    `json:"packet_hops"`
	NoRoute   uint64    `json:"no_route"`
	Damaged   uint64    `json:"damaged"`
	Dropped   uint64    `json:"dropped"` // packets dropped by full queues
	Lost      uint64    `json:"lost"`    // packets lost on links
	Marked    uint64    `json:"marked"`
	Queue     float64   `json:"longest_queue_us"`
	Fabric    uint64    `json:"busiest_fabric_link_bytes,omitempty"` // the bytes of a link between switches, with headers
	Hash      string    `json:"hash"`
	Programs  []Program `json:"programs"`
}

// Program is the result of one program of a phase.
type Program struct {
	Kind      string  `json:"program"`
	Algorithm string  `json:"algorithm,omitempty"`
	Flows     int64   `json:"flows"`
	Done      int64   `json:"flows_completed"`
	Last      float64 `json:"completed_us"`
	Goodput   float64 `json:"goodput_gbit_s,omitempty"` // bytes of a rank over the phase's time
	Analytic  float64 `json:"analytic_us,omitempty"`
	P50       float64 `json:"flow_p50_us"`
	P99       float64 `json:"flow_p99_us"`
	Max       float64 `json:"flow_max_us"`
	Writes    *Writes `json:"writes,omitempty"` // the writes of storage
	Sent      uint64  `json:"busiest_trainer_link_bytes,omitempty"`
	Whole     int     `json:"receivers_with_all,omitempty"` // the number of receivers of weights that have all
}

// addMode notes how packets of another phase were simulated.
func (r *Result) addMode(mode string) {
	if r.Mode != "" && r.Mode != mode {
		mode = r.Mode + "; " + mode
	}
	r.Mode = mode
}

func vars(p *spec.Point) map[string]string {
	m := make(map[string]string)
	for _, v := range p.Vars {
		m[v.Name] = v.Value
	}
	return m
}

// writeJSON writes a line.
func (r *Result) writeJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// columns are those of CSV after the variables.
var columns = []string{"jct_us", "analytic_us", "phase", "phase_jct_us", "phase_analytic_us", "flows", "flows_completed", "failed", "dropped", "lost", "damaged", "no_route", "marked", "longest_queue_us", "packet_hops", "mode", "hash", "wall_s", "hops_per_s", "partial", "address"}

// writeCSV writes a line for each phase, and the names of columns before the first.
func (r *Result) writeCSV(w io.Writer, names []string, header bool) error {
	c := csv.NewWriter(w)
	if header {
		_ = c.Write(append(append([]string(nil), names...), columns...)) // Error has it
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	for _, p := range r.Phases {
		var line []string
		for _, n := range names {
			line = append(line, r.Vars[n])
		}
		line = append(line, number(r.JCT), number(r.Analytic), p.Name, number(p.JCT), number(p.Analytic), fmt.Sprint(p.Flows), fmt.Sprint(p.Done), fmt.Sprint(p.Failed),
			fmt.Sprint(p.Dropped), fmt.Sprint(p.Lost), fmt.Sprint(p.Damaged), fmt.Sprint(p.NoRoute), fmt.Sprint(p.Marked), number(p.Queue), fmt.Sprint(p.Hops), p.Mode, p.Hash, number(r.Wall), number(r.HopsPerS), fmt.Sprint(r.Partial), r.Address)
		_ = c.Write(line)
	}
	c.Flush()
	return c.Error()
}

// writeText writes what a person reads, with the values of the variables in names.
func (r *Result) writeText(w io.Writer, names []string) error {
	title := []string{r.Study}
	for _, n := range names {
		title = append(title, n+"="+r.Vars[n])
	}
	if s := strings.TrimSpace(strings.Join(title, " ")); s != "" {
		fmt.Fprintln(w, s)
	}
	analytic := func(x float64) string {
		if x == 0 {
			return ""
		}
		return fmt.Sprintf(", analytic %.1f µs", x)
	}
	for _, p := range r.Phases {
		rare := ""
		for _, n := range []struct {
			count uint64
			what  string
		}{{p.Damaged, "damaged"}, {p.NoRoute, "without a route"}, {uint64(p.Failed), "failed"}} {
			if n.count > 0 {
				rare += fmt.Sprintf(", %d %s", n.count, n.what)
			}
		}
		fmt.Fprintf(w, "  %s: %.1f µs%s; %d of %d flows, %d packet-hops, %d dropped, %d lost%s, %s, hash %s\n", p.Name, p.JCT, analytic(p.Analytic), p.Done, p.Flows, p.Hops, p.Dropped, p.Lost, rare, p.Mode, p.Hash)
		for _, g := range p.Programs {
			fmt.Fprintf(w, "    %s %s: completed at %.1f µs; flows: median %.1f, 99 %% %.1f, longest %.1f µs\n", g.Kind, g.Algorithm, g.Last, g.P50, g.P99, g.Max)
			if g.Writes != nil {
				g.Writes.text(w)
			}
		}
	}
	partial := ""
	if r.Partial {
		partial = " (partial)"
	}
	_, err := fmt.Fprintf(w, "  JCT %.1f µs%s%s; %.1f s, %.2f M packet-hops/s, %d MB\n", r.JCT, analytic(r.Analytic), partial, r.Wall, r.HopsPerS/1e6, r.RSS>>20)
	return err
}
