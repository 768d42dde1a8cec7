// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/bench/stat"
)

// sample is a run's result, with made-up numbers.
func sample() *Result {
	r := &Result{Rounds: 5, Seconds: 1, Machine: Machine{CPU: "some CPU", CPUs: 2, Kernel: "6.1", Go: "go1", Commit: "abc"}}
	for name, in := range map[string]float64{
		bareRow: 300_000, gleamdRow: 280_000, gleamdAckRow: 250_000, bridgeRow: 226_000, forwarderRow: 110_000,
	} {
		r.Rows = append(r.Rows, Row{Name: name, Payload: 1024, Legs: 3, InPPS: in, OutPPS: 3 * in, CPU: 1000, In: []float64{in}})
	}
	r.Rows = append(r.Rows, Row{Name: broadcastRow, Payload: 4096, Legs: 3, Reason: "no fragments"})
	r.Rows[0].Unsaturated = true
	r.Latency = []Latency{
		{Name: gleamdRow, Payload: 1024, Legs: 3, Gap: 200, Samples: 10, P50: 30}, {Name: bridgeRow, Payload: 1024, Legs: 3, Gap: 200, Samples: 10, P50: 12},
		{Name: gleamdRow, Payload: 1024, Legs: 3, Gap: 30, Samples: 10, P50: 8}, {Name: bridgeRow, Payload: 1024, Legs: 3, Gap: 30, Samples: 10, P50: 7},
	}
	return r
}

// wantedTarget is a target as it should be; name is a part of its name.
type wantedTarget struct {
	name     string
	measured float64
	met      bool
}

func checkTargets(t *testing.T, got []Target, want []wantedTarget) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d targets, want %d: %+v", len(got), len(want), got)
	}
	for i, w := range want {
		g := got[i]
		if !strings.Contains(g.Name, w.name) || math.Abs(g.Measured-w.measured) > 1e-5 || g.Met != w.met {
			t.Errorf("target %d: %+v, want %+v", i, g, w)
		}
	}
}

func TestJudge(t *testing.T) {
	r := sample()
	r.judge()
	want := []wantedTarget{
		{"bare", 28.0 / 30, true},
		{"bridge", 280.0 / 226, false},
		{"UDP forwarder", 28.0 / 11, true},
		{"loss", 0, true},
		{"ACKs", 1 - 25.0/28, false},
		{"latency", 2.5, false},
	}
	checkTargets(t, r.Targets, want)
	// Ratios are of the same round: here the machine was half as fast in the first one.
	r = sample()
	for i := range r.Rows {
		switch x := &r.Rows[i]; x.Name {
		case gleamdRow:
			x.In = []float64{140_000, 285_000, 290_000}
		case bareRow:
			x.In = []float64{150_000, 300_000, 310_000}
		}
	}
	if r.judge(); math.Abs(r.Targets[0].Measured-29.0/31) > 1e-5 {
		t.Errorf("a ratio over rounds: %+v", r.Targets[0])
	}
	// A row that was not measured has no target, met or missed.
	r = sample()
	r.Latency = nil
	for i := range r.Rows {
		if r.Rows[i].Name == bareRow {
			r.Rows[i].Reason = "broken"
		}
	}
	if r.judge(); len(r.Targets) != 4 {
		t.Errorf("%d targets without a bare loop and latency: %+v", len(r.Targets), r.Targets)
	}
}

// The JSON has the fields that scripts were promised.
func TestJSONShape(t *testing.T) {
	r := sample()
	r.judge()
	var b bytes.Buffer
	if err := cli.WriteJSON(&b, r); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Machine map[string]any
		Rows    []map[string]any
		Latency []map[string]any
		Targets []map[string]any
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	need := func(what string, m map[string]any, keys ...string) {
		t.Helper()
		for _, k := range keys {
			if _, ok := m[k]; !ok {
				t.Errorf("%s has no %q: %v", what, k, m)
			}
		}
	}
	need("machine", got.Machine, "cpu", "cpus", "kernel", "go", "commit")
	for _, x := range got.Rows {
		need("row", x, "name", "payload", "legs", "in_pps", "out_pps", "cpu_ns_per_out", "loss")
		if x["reason"] != nil && x["in_pps"] != 0.0 {
			t.Errorf("a row without numbers has some: %v", x)
		}
	}
	for _, x := range got.Latency {
		need("latency", x, "name", "gap_us", "p50_us", "p99_us", "last_p50_us", "last_p99_us", "samples", "lost")
	}
	for _, x := range got.Targets {
		need("target", x, "name", "measured", "bound", "at_most", "met")
	}
}

func TestTableAndChart(t *testing.T) {
	r := sample()
	r.judge()
	var b bytes.Buffer
	if err := r.writeTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"some CPU", "280.0", "840.0", "- xdp-broadcast, 4096 B: no fragments", "missed", "met", "p50 30.0 µs", "≥: the row took all"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	file := filepath.Join(t.TempDir(), "x.svg")
	if err := r.saveChart(file); err != nil {
		t.Fatal(err)
	}
	if svg, err := os.ReadFile(file); err != nil || !bytes.Contains(svg, []byte("<svg")) || !bytes.Contains(svg, []byte("gleamd")) {
		t.Errorf("the chart is no SVG: %v", err)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{5, 1, 3}, 3}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := stat.Median(c.v); got != c.want {
			t.Errorf("median of %v: %v, want %v", c.v, got, c.want)
		}
	}
}

func TestOptionsCheck(t *testing.T) {
	ok := Default()
	if err := ok.check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Options){
		"rounds":  func(o *Options) { o.Rounds = 0 },
		"seconds": func(o *Options) { o.Duration = 0 },
		"payload": func(o *Options) { o.Payloads = []int{1024, 32} },
		"odd":     func(o *Options) { o.Payloads = []int{1023} },
		"legs":    func(o *Options) { o.Legs = []int{maxLegs} },
		"none":    func(o *Options) { o.Legs = nil },
		"rows":    func(o *Options) { o.Rows = []string{"gleamd", "token-ring"} },
	} {
		o := Default()
		if change(&o); o.check() == nil {
			t.Errorf("%s: accepted %+v", name, o)
		}
	}
}

// The targets of the fast path are ratios to the other rows of the same case.
func TestFastTargets(t *testing.T) {
	r := &Result{
		Rows: []Row{
			{Name: gleamdRow, Payload: 1024, Legs: 3, CPU: 1000, In: []float64{100}},
			{Name: fastRow, Payload: 1024, Legs: 3, CPU: 300, In: []float64{400}},
			{Name: fastAckRow, Payload: 1024, Legs: 3, CPU: 330, In: []float64{380}},
			{Name: broadcastRow, Payload: 1024, Legs: 3, CPU: 240, In: []float64{500}},
			{Name: noRepairRow, Payload: 1024, Legs: 3, CPU: 250, In: []float64{420}},
			{Name: bridgeRow, Payload: 1024, Legs: 3, CPU: 900, In: []float64{160}},
			{Name: fastRow, Payload: 1024, Legs: 7, CPU: 200, In: []float64{300}},
			{Name: broadcastRow, Payload: 1024, Legs: 7, CPU: 180, In: []float64{375}},
			{Name: gleamdRow, Payload: 4096, Legs: 3, CPU: 1000, In: []float64{100}},
			{Name: fastRow, Payload: 4096, Legs: 3, CPU: 760, In: []float64{100}},
		},
		Latency: []Latency{
			{Name: gleamdRow, Gap: 200, P50: 40, P99: 90}, {Name: gleamdRow, Gap: 30, P50: 1, P99: 1},
			{Name: fastRow, Gap: 200, P50: 10, P99: 60}, {Name: bridgeRow, Gap: 200, P50: 20, P99: 40},
			{Name: broadcastRow, Gap: 200, P50: 8, P99: 50},
		},
	}
	r.judgeFast()
	want := []wantedTarget{
		{"XDP broadcast, 7 receivers", 0.8, false},
		{"without the store", 0.84, true},
		{"fast path / gleamd, 4096 B", 0.76, true},
		{"fast path / XDP broadcast", 0.8, true},
		{"fast path / gleamd", 4, true},
		{"bridge multicast flood", 2.5, false},
		{"CPU time per copy", 0.3, true},
		{"lost to ACKs", 0.05, true},
		{"p99", 0.666667, false},
		{"p50 latency at a frame every 200 µs, fast path / XDP broadcast", 1.25, false},
		{"p99 latency at a frame every 200 µs, fast path / XDP broadcast", 1.2, true},
		{"p50 latency at a frame every 200 µs, fast path / bridge", 0.5, true},
		{"p99 latency at a frame every 200 µs, fast path / bridge", 1.5, false},
	}
	checkTargets(t, r.Targets, want)
}
