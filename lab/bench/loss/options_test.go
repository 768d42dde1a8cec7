// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/bench/options"
)

func TestOptionsRefused(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"--receivers [0]":              func(o *Options) { o.Receivers = []int{0} },
		"--receivers [127]":            func(o *Options) { o.Receivers = []int{127} },
		"--receivers []":               func(o *Options) { o.Receivers = nil },
		"--loss [0.5]":                 func(o *Options) { o.Loss = []float64{0.5} },
		"--loss [-1]":                  func(o *Options) { o.Loss = []float64{-1} },
		"--loss [NaN]":                 func(o *Options) { o.Loss = []float64{math.NaN()} },
		"--burst [0.5]":                func(o *Options) { o.Burst = []float64{0.5} },
		"--burst []":                   func(o *Options) { o.Burst = nil },
		"nothing is left":              func(o *Options) { o.Repair, o.Unicast = nil, nil },
		"there twice":                  func(o *Options) { o.Loss = []float64{0.1, 0, 0.1} },
		"--repair: a value":            func(o *Options) { o.Repair = []bool{true, true} },
		"--rounds 0":                   func(o *Options) { o.Rounds = 0 },
		"--duration 1ms":               func(o *Options) { o.Duration = time.Millisecond },
		"--mtu 1500":                   func(o *Options) { o.MTU = 1500 },
		"--message-size 4":             func(o *Options) { o.MessageSize = 4 },
		"--message-size 1001":          func(o *Options) { o.MessageSize = 1001 },
		"--size 100":                   func(o *Options) { o.Size = 100 },
		"--depth 65":                   func(o *Options) { o.Depth = 65 },
		"--timeout 7":                  func(o *Options) { o.Timeout = 7 },
		"--repair-timeout 0s":          func(o *Options) { o.RepairTimeout = 0 },
		"--rate NaN":                   func(o *Options) { o.Rate = math.NaN() },
		"--rate -1":                    func(o *Options) { o.Rate = -1 },
		"--load 0":                     func(o *Options) { o.Load = 0 },
		"--unicast 4: it is not among": func(o *Options) { o.Unicast = []int{4} },
	} {
		o := defaults()
		change(&o)
		if err := o.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	o := defaults()
	if err := o.check(); err != nil {
		t.Error(err)
	}
}

// The base of all comparisons is measured whether requested or not, and first.
func TestNoLossIsAlwaysMeasured(t *testing.T) {
	for _, loss := range [][]float64{{0.1, 0.01}, {0.1, 0, 0.01}, {0}} {
		o := defaults()
		o.Loss = slices.Clone(loss)
		if err := o.check(); err != nil {
			t.Fatal(err)
		}
		if o.Loss[0] != 0 || !slices.IsSorted(o.Loss) || slices.Contains(o.Loss[1:], 0) {
			t.Errorf("%v became %v", loss, o.Loss)
		}
	}
}

func TestCells(t *testing.T) {
	o := defaults()
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	with, without := o.cases(3), o.cases(16)
	// 3 losses independent, 3 in bursts, and none; repair on and off, and unicasts.
	if len(with) != 21 || len(without) != 14 || o.measurements() != 5*(21+14+14) {
		t.Errorf("%d and %d cases, %d measurements", len(with), len(without), o.measurements())
	}
	seen := make(map[lossCase]bool)
	for _, c := range with {
		if seen[c] {
			t.Errorf("%v is there twice", c)
		}
		seen[c] = true
		if !seen[c.withoutLoss()] {
			t.Errorf("%v comes before what it is compared with", c)
		}
		if c.loss == 0 && c.burst != 0 || c.mode == Unicast && c.repair {
			t.Errorf("%+v makes no sense", c)
		}
	}
}

// Which frames are lost is another matter in every round and for every loss,
// and the same for every kind of connection.
func TestSeeds(t *testing.T) {
	o := defaults()
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	b := &lossBench{opts: &o}
	seen := make(map[uint64]lossCase)
	for round := range 5 {
		for _, c := range o.cases(3) {
			seed, like := b.seed(c, round), lossCase{loss: c.loss, burst: c.burst, receivers: round}
			if other, ok := seen[seed]; ok && other != like {
				t.Errorf("%v and %v have the same seed", other, like)
			}
			seen[seed] = like
		}
	}
	if want := 5 * 7; len(seen) != want {
		t.Errorf("%d seeds, want %d", len(seen), want)
	}
	for a := range seen {
		for b := range seen {
			if a < b && b-a <= maxReceivers {
				t.Errorf("seeds %d and %d are nearer than there are receivers", a, b)
			}
		}
	}
}

// A wrong command line is refused with the remedy, before anything is built.
func TestCommandLine(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"here", `"here"`},
		{"-o xml", "want table, wide, json, yaml"},
		{"--repair maybe", "want on, off, or both"},
		{"--receivers none", "receivers"},
		{"--receivers 0", "want numbers from 1 to 126"},
		{"--loss 2", "probabilities"},
		{"--burst 0.1", "mean lengths"},
		{"--quick --rounds 0", "--rounds 0"},
		{"--unicast 5", "not among"},
		{"--size much", `"much" is no size`},
		{"--depth 0", "--depth 0"},
	} {
		var out, say bytes.Buffer
		env := &cli.Env{Stdout: &out, Stderr: &say}
		if code := cli.Run(t.Context(), env, append([]string{"loss"}, strings.Fields(c.args)...), Command); code != cli.ExitUsage {
			t.Errorf("%s: exit code %d\n%s", c.args, code, &say)
		}
		if !strings.Contains(say.String(), c.want) || out.Len() > 0 {
			t.Errorf("%s: want %q in\n%s%s", c.args, c.want, &say, &out)
		}
	}
}

// --quick changes only flags that are not given.
func TestQuick(t *testing.T) {
	c := Command(&cli.Env{})
	if err := c.ParseFlags([]string{"--quick", "--loss", "0.2"}); err != nil {
		t.Fatal(err)
	}
	if err := options.SetQuick(c, quick); err != nil {
		t.Fatal(err)
	}
	f := c.Flags()
	loss, err1 := f.GetFloat64Slice("loss")
	burst, err2 := f.GetFloat64Slice("burst")
	receivers, err3 := f.GetIntSlice("receivers")
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(loss, []float64{0.2}) || !slices.Equal(burst, []float64{0}) || !slices.Equal(receivers, []int{3, 16}) {
		t.Errorf("loss %v, bursts %v, receivers %v", loss, burst, receivers)
	}
	if d := f.Lookup("duration").Value.String(); d != "600ms" {
		t.Errorf("duration %s", d)
	}
}
