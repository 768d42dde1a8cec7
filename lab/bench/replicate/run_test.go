// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package replicate

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/internal/cli/perf"
	"github.com/gleam-rdma/gleam/lab/bench/machine"
	"github.com/gleam-rdma/gleam/test/labtest"
)

var programs = labtest.Programs{Packages: []string{"../../../cmd/gleamd"}}

func TestMain(m *testing.M) { os.Exit(programs.Run(m)) }

// small are options for a run of some seconds, on links that any machine can fill.
func small(t *testing.T) Options {
	o := defaults()
	o.Replicas, o.Modes, o.Sizes, o.Depths = []int{2}, perf.Modes, []int{16 << 10}, []int{8}
	o.Rounds, o.Duration, o.Rate = 1, 300*time.Millisecond, 10_000_000
	o.Gleamd = programs.Path(t, "gleamd")
	return o
}

func nothingLeft(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(runDir, fmt.Sprintf("run-%d", os.Getpid()))); err == nil {
		t.Error("the directory is left")
	}
}

// The link bounds all modes: what it carries for each byte, and so the rate, is known beforehand.
func TestRun(t *testing.T) {
	labtest.Require(t)
	o := small(t)
	var say, table, json bytes.Buffer
	r, err := Run(t.Context(), o, machine.Here("test"), &say)
	if err != nil {
		t.Fatalf("%v\n%s", err, &say)
	}
	if len(r.Rows) != 1+len(perf.Modes) {
		t.Fatalf("%d rows", len(r.Rows))
	}
	copies := map[string]float64{perf.Group: 1, perf.Chain: 1, perf.Unicasts: 2, perf.Tree: 2}
	for i, x := range r.Rows {
		n := copies[x.Mode]
		if i == 0 {
			n = 1
		}
		if x.Link < n || x.Link > n*1.2 && x.Resent == 0 {
			t.Errorf("%s to %d: the sender's link carried %.3f bytes for each, want %v", x.Mode, x.Replicas, x.Link, n)
		}
		if most := float64(o.Rate) / 8 / 1e6 / n; x.MBs <= 0 || x.MBs > most*1.3 { // the shaper's burst, in a short run
			t.Errorf("%s to %d: %.2f MB/s, and the link allows %.2f", x.Mode, x.Replicas, x.MBs, most)
		}
		if !(0 < x.P50 && x.P50 <= x.P99 && x.P99 <= x.P999) || x.IOPS <= 0 || x.OfOne <= 0 {
			t.Errorf("%+v", x)
		}
		if x.Replicas == 2 && !(x.OfUnicasts > 0 && x.P50OfThem > 0) {
			t.Errorf("not compared with unicasts: %+v", x)
		}
	}
	if err := r.writeTable(&table); err != nil || strings.Count(table.String(), "\n") != 3+2+len(r.Rows) {
		t.Errorf("%v\n%s", err, &table)
	}
	if err := cli.WriteJSON(&json, r); err != nil || !strings.Contains(json.String(), `"iops_of_one_copy"`) {
		t.Errorf("%v\n%s", err, &json)
	}
	nothingLeft(t)
}

// Cancelled, as by Ctrl-C, Run ends soon and leaves no state.
func TestCancel(t *testing.T) {
	labtest.Require(t)
	o := small(t)
	o.Rounds = 1000
	labtest.Cancel(t, "round 1", func(ctx context.Context, say *labtest.Output) error {
		_, err := Run(ctx, o, machine.Machine{}, say)
		return err
	})
	nothingLeft(t)
}

func TestOptions(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"":           func(*Options) {},
		"--replicas": func(o *Options) { o.Replicas = []int{0} },
		"--modes":    func(o *Options) { o.Modes = []string{"ring"} },
		"--sizes":    func(o *Options) { o.Sizes = []int{4096, 4096} },
		"--depths":   func(o *Options) { o.Depths = nil },
		"--rounds":   func(o *Options) { o.Rounds = 0 },
		"--duration": func(o *Options) { o.Duration = 0 },
		"--rate":     func(o *Options) { o.Rate = 0 },
		"--mtu":      func(o *Options) { o.MTU = 1500 },
	} {
		o := defaults()
		change(&o)
		if err := o.check(); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want+" ") {
			t.Errorf("%s: %v", want, err)
		}
	}
}
