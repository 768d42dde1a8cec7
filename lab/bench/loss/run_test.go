// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab/bench/machine"
	"github.com/gleam-rdma/gleam/test/labtest"
)

var programs = labtest.Programs{Packages: []string{"../../../cmd/gleamd"}}

func TestMain(m *testing.M) { os.Exit(programs.Run(m)) }

// small are options for a run of some seconds.
func small(t *testing.T) Options {
	o := defaults()
	o.Receivers, o.Loss, o.Burst = []int{3}, []float64{0.02}, []float64{0, 4}
	o.Rounds, o.Duration, o.Rate = 2, 150*time.Millisecond, 20
	o.Gleamd = programs.Path(t, "gleamd")
	return o
}

// nothingLeft: neither files nor processes.
func nothingLeft(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(runDir, fmt.Sprintf("run-%d", os.Getpid()))); err == nil {
		t.Error("the directory is left")
	}
	for _, f := range glob(t, fmt.Sprintf("/proc/%d/task/*/children", os.Getpid())) {
		b, _ := os.ReadFile(f) // the thread may have ended
		for pid := range strings.FieldsSeq(string(b)) {
			t.Errorf("process %s is left", pid)
		}
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestRun measures a little of each kind. It does not check speeds, which depend on the
// machine, only that all values are measured and add up.
func TestRun(t *testing.T) {
	labtest.Require(t)
	o := small(t)
	var say bytes.Buffer
	r, err := Run(t.Context(), o, machine.Here("test"), &say)
	if err != nil {
		t.Fatalf("%v\n%s", err, &say)
	}
	if len(r.Links) != 1 || r.Links[0].Mbits != 20 || len(r.Links[0].Unpaced) != 3 {
		t.Errorf("links %+v", r.Links)
	}
	if len(r.Rows) != 9 {
		t.Fatalf("%d rows", len(r.Rows))
	}
	for _, x := range r.Rows {
		what := lossCase{receivers: x.Receivers, mode: x.Mode, repair: x.Repair, loss: x.Loss, burst: x.Burst}
		if x.Receivers != 3 || !x.BytesEqual || x.Messages == 0 || x.Packets != 8*x.Messages || !(x.Goodput > 0) || !(x.P50 > 0) || x.P99 < x.P50 {
			t.Errorf("%v: %+v", what, x)
		}
		switch {
		case x.Loss == 0 && (x.LostPackets > 0 || x.GoodputRatio != 1):
			t.Errorf("%v: %d packets lost, ratio %v", what, x.LostPackets, x.GoodputRatio)
		case x.Loss > 0 && x.LostPackets == 0:
			t.Errorf("%v: no packet was lost", what)
		case x.Loss > 0 && x.SenderRetransmissions == 0 && (x.Mode == Unicast || !x.Repair):
			t.Errorf("%v: %d packets lost, and nobody sent them again", what, x.LostPackets)
		case x.Repair && (x.StoreHighWater == 0 || x.Loss > 0 && x.SwitchResent == 0):
			t.Errorf("%v: the switch has kept %d bytes and sent %d packets again", what, x.StoreHighWater, x.SwitchResent)
		case !x.Repair && x.SwitchResent+uint64(x.StoreHighWater) != 0:
			t.Errorf("%v: the switch has kept %d bytes and sent %d packets again", what, x.StoreHighWater, x.SwitchResent)
		case x.Mode == Unicast && x.HealthyExtraBytes != 0:
			t.Errorf("%v: %d bytes too many came to the control receiver", what, x.HealthyExtraBytes)
		}
	}
	nothingLeft(t)
}

// Cancelled, as by Ctrl-C, Run ends soon and leaves no state.
func TestCancel(t *testing.T) {
	labtest.Require(t)
	o := small(t)
	o.Rounds, o.Duration = 1000, 300*time.Millisecond
	labtest.Cancel(t, "unpaced", func(ctx context.Context, say *labtest.Output) error {
		_, err := Run(ctx, o, machine.Machine{}, say)
		return err
	})
	nothingLeft(t)
}
