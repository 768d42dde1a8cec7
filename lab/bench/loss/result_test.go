// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/bench/chart"
	"github.com/gleam-rdma/gleam/lab/bench/machine"
	"github.com/gleam-rdma/gleam/lab/bench/stat"
)

func TestStatistics(t *testing.T) {
	for _, c := range []struct {
		vs   []float64
		want float64
	}{{[]float64{7}, 7}, {[]float64{9, 1}, 5}, {[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := stat.Median(c.vs); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.vs, got, c.want)
		}
	}
	samples := make([]time.Duration, 200)
	for i := range samples {
		samples[i] = time.Duration(i+1) * time.Microsecond
	}
	for _, c := range []struct {
		n, num int
		want   float64
	}{{200, 50, 100}, {200, 99, 198}, {200, 100, 200}, {1, 50, 1}, {1, 99, 1}, {3, 50, 2}, {0, 50, 0}} {
		if got := percentile(samples[:c.n], c.num); got != c.want {
			t.Errorf("%d %% of %d samples: %v, want %v", c.num, c.n, got, c.want)
		}
	}
}

// Ratios are to the median without loss.
func TestSummarize(t *testing.T) {
	c := lossCase{receivers: 3, mode: Group, repair: true, loss: 0.01}
	us := time.Microsecond
	samples := []sample{
		{goodput: 50, messages: 2, packets: 16, lost: 3, controlExtra: 0, latencies: []time.Duration{10 * us, 40 * us}, sender: endpoint.QPStats{Retransmitted: 1, NAKs: 2}, store: repairStore{10, 1, 2, 3, 4, 5}},
		{goodput: 90, messages: 1, packets: 8, lost: 1, controlExtra: 70, latencies: []time.Duration{20 * us}, sender: endpoint.QPStats{Timeouts: 3, RNRs: 4}, store: repairStore{30, 3, 4, 0, 0, 20}},
		{goodput: 10, messages: 1, packets: 8, lost: 0, controlExtra: 0, latencies: []time.Duration{30 * us}, store: repairStore{20, 0, 0, 0, 0, 0}},
	}
	got := summarize(c, samples, []float64{100, 100, 12.5})
	want := Row{
		Receivers: 3, Mode: Group, Repair: true, Loss: 0.01, GoodputRatio: 0.5, GoodputRatioMin: 0.1, GoodputRatioMax: 0.9, Goodput: 50,
		SenderRetransmissions: 1, SenderTimeouts: 3, SenderNAKs: 2, SenderRNRs: 4, HealthyExtraBytes: 70,
		Messages: 4, Packets: 32, LostPackets: 4, StoreHighWater: 30, SwitchResent: 4, SwitchNAKs: 3, SwitchProbes: 4, SwitchNotRetained: 6, FastPackets: 25, P50: 20, P99: 40, BytesEqual: true,
	}
	if got != want {
		t.Errorf("\n%+v, want\n%+v", got, want)
	}
}

// result is the result of a small run.
func result() *Result {
	r := &Result{
		Machine: machine.Machine{CPU: "Some CPU", Cores: 2}, PathMTU: 1024, MessageSize: 8192, Depth: 16, Rounds: 5, Seconds: 2, Seed: 1,
		Links: []Link{
			{Receivers: 3, Mbits: 100, Unpaced: []Max{{Group, true, 25e6}, {Unicast, false, 10e6}}},
			{Receivers: 16, Mbits: 50, Unpaced: []Max{{Group, true, 12e6}}},
		},
	}
	for _, l := range r.Links {
		for _, c := range []lossCase{{mode: Group, repair: true}, {mode: Group}, {mode: Unicast}} {
			for _, x := range []struct{ loss, burst, ratio float64 }{{0, 0, 1}, {1e-3, 0, 0.98}, {1e-2, 0, 0.9}, {1e-3, 8, 0.97}} {
				r.Rows = append(r.Rows, Row{
					Receivers: l.Receivers, Mode: c.mode, Repair: c.repair, Loss: x.loss, Burst: x.burst,
					GoodputRatio: x.ratio, GoodputRatioMin: x.ratio - 0.01, GoodputRatioMax: x.ratio + 0.01, Goodput: 12.25e6 * x.ratio,
					SenderRetransmissions: 77, HealthyExtraBytes: 88, LostPackets: 99, P50: 1230, P99: 45600, StoreHighWater: 4096, SwitchResent: 66, Packets: 64, FastPackets: 50, BytesEqual: true,
				})
			}
		}
	}
	return r
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	if err := result().writeTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{
		{"Some CPU"}, {"8192 bytes", "5 rounds"},
		{"3", "100.0 Mbit/s", "group, repair on 25.00 MB/s, unicast 10.00 MB/s"},
		{"receivers", "resent by sender", "extra to healthy", "p99"},
		{"3", "group", "on", "0", "-", "12.25", "100.0", "99.0..101.0", "77", "66", "88", "99", "4", "78.1", "1.23", "45.60"},
		{"16", "group", "off", "0.001", "indep.", "12.01", "98.0"},
		{"3", "unicast", "-", "0.001", "~8"},
	} {
		found := false
		for line := range strings.Lines(b.String()) {
			at, ok := 0, true
			for _, w := range want {
				i := strings.Index(line[at:], w)
				if ok = ok && i >= 0; ok {
					at += i + len(w)
				}
			}
			found = found || ok
		}
		if !found {
			t.Errorf("no line with %q in\n%s", want, &b)
		}
	}
}

// The names that others read.
func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := cli.WriteJSON(&b, result()); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Rows []map[string]any `json:"rows"`
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || len(got.Rows) != 24 {
		t.Fatalf("%d rows: %v\n%s", len(got.Rows), err, &b)
	}
	want := map[string]any{
		"receivers": 3., "loss": 0.001, "repair": true, "mode": "group", "goodput_ratio": 0.98, "sender_retransmissions": 77.,
		"healthy_extra_bytes": 88., "p50_us": 1230., "p99_us": 45600., "burst": 0., "store_high_water_bytes": 4096., "switch_resent_packets": 66., "bytes_equal": true,
	}
	for name, v := range want {
		if got.Rows[1][name] != v {
			t.Errorf("%s is %v, want %v", name, got.Rows[1][name], v)
		}
	}
}

func TestCharts(t *testing.T) {
	r := result()
	panels := r.charts()
	if len(panels) != 2 {
		t.Fatalf("%d panels, want one for each number of receivers", len(panels))
	}
	l := panels[0].(*chart.Lines)
	if len(l.Series) != 6 {
		t.Errorf("%d series, want each of 3 kinds with independent losses and with bursts", len(l.Series))
	}
	for _, s := range l.Series {
		if math.Abs(s.Points[0].X-1e-4) > 1e-12 || s.Points[0].Y != 100 || math.Abs(s.Points[1].X-1e-3) > 1e-12 {
			t.Errorf("series %s begins with %+v", s.Name, s.Points[:2])
		}
	}
	var b bytes.Buffer
	if err := chart.WriteSVG(&b, panels...); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(b.Bytes()))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"3 receivers, link of 100 Mbit/s", "16 receivers", "group, repair on", "group, repair off, bursts of 8", "unicast", "0.1 %", "1 %"} {
		if !strings.Contains(b.String(), ">"+want) {
			t.Errorf("no %q in the picture", want)
		}
	}
	// Without any loss there is something to draw too.
	only := &Result{Links: r.Links[:1], Rows: r.Rows[:1]}
	if err := chart.WriteSVG(io.Discard, only.charts()...); err != nil {
		t.Error(err)
	}
}
