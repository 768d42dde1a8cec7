// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab/bench/machine"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// TestRun measures a few groups: more than alternate at a time, and fewer.
func TestRun(t *testing.T) {
	labtest.Require(t)
	gleamd := filepath.Join(t.TempDir(), "gleamd")
	if err := labtest.Build(gleamd, "../../../cmd/gleamd"); err != nil {
		t.Fatal(err)
	}
	cpu := 0.0 // in ticks of 10 ms: three groups may take none
	for n, fast := range map[int]bool{40: false, 3: false, 41: true} {
		o := defaults()
		o.Groups, o.Members, o.Rounds, o.Duration, o.Gleamd, o.FastPath = []int{n}, []int{3}, 2, 30*time.Millisecond, gleamd, fast
		var log bytes.Buffer
		all, err := Run(t.Context(), o, machine.Machine{}, &log)
		if err != nil {
			t.Fatalf("%v\n%s", err, log.String())
		}
		res := &all.Rows[0]
		if len(res.OnePPS) != 2 || len(res.AllPPS) != 2 || res.OnePPS[0] <= 0 || res.AllPPS[1] <= 0 || len(res.AllCPU) != 2 || res.Seconds <= 0 || res.MemoryAfter <= 0 {
			t.Errorf("%+v", res)
		}
		cpu += res.RegistrationCPU
		if f := res.Fast; (f != nil) != fast || fast && (f.Ever == 0 || len(f.Slots) == 0 || len(res.AllFast) != 2 || res.AllFast[1] <= 0) {
			t.Errorf("on the fast path: %+v, %v", f, res.AllFast)
		}
	}
	if cpu <= 0 {
		t.Error("84 registrations take no CPU time")
	}
	if left, err := os.ReadDir(runDir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestOptions(t *testing.T) {
	for says, change := range map[string]func(*Options){
		"":                func(*Options) {},
		"--groups [0]":    func(o *Options) { o.Groups = []int{0} },
		"--groups []":     func(o *Options) { o.Groups = nil },
		"--members [4 1]": func(o *Options) { o.Members = []int{4, 1} },
		"--payload 5":     func(o *Options) { o.Payload = 5 },
		"--rounds 0":      func(o *Options) { o.Rounds = 0 },
		"--duration 0s":   func(o *Options) { o.Duration = 0 },
		"--parallel 0":    func(o *Options) { o.Parallel = 0 },
	} {
		o := defaults()
		change(&o)
		err := o.check()
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

func TestTable(t *testing.T) {
	row := Row{Groups: 1000, Members: 16, RegistrationCPU: 500, Seconds: 20, MemoryBefore: 50e6, MemoryAfter: 60e6, OnePPS: []float64{100e3, 90e3, 80e3}, AllPPS: []float64{90e3, 88e3, 60e3},
		OneCPU: []float64{10, 11, 12}, AllCPU: []float64{12, 13, 14}}
	row.summarize()
	r := &Result{Payload: 1024, Parallel: 4, Rows: []Row{row}}
	var b bytes.Buffer
	if err := r.writeTable(&b); err != nil {
		t.Fatal(err)
	}
	const want = `; medians of 3 rounds, registrations 4 at a time

1000 groups of 16 members, by envelopes  20.0 s        20.0 ms for each  500 µs of gleamd's CPU time
gleamd's memory for them                 10.0 MB       10.0 KB for each
packets of 1024 bytes into one of them   90.0 kpps in  1350.0 kpps out  11.0 µs of CPU time for each in
into all of them in turn                 88.0 kpps in  1320.0 kpps out  13.0 µs

Target  met  speed with 1000 groups against that with one: 0.900 (≥ 0.9)
`
	if !strings.HasSuffix(b.String(), want) {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
	more := row
	more.Groups, more.MemoryAfter = 2000, 60.5e6
	more.summarize()
	r.Rows = append(r.Rows, more)
	b.Reset()
	if err := r.writeTable(&b); err != nil {
		t.Fatal(err)
	}
	const rows = `
  members  groups  ns a packet  of one group's  kpps in  of one group's  bytes a group  registrations/s  µs of gleamd for one
       16    1000        13000            1.18     88.0           0.900          10000               50                   500
       16    2000        13000            1.18     88.0           0.900           5250              100                   500
`
	if !strings.HasSuffix(b.String(), rows) {
		t.Errorf("%s\nwant\n%s", b.String(), rows)
	}
	file := filepath.Join(t.TempDir(), "groups.svg")
	if err := r.draw(file); err != nil {
		t.Fatal(err)
	}
	if svg, err := os.ReadFile(file); err != nil || !bytes.Contains(svg, []byte("16 members")) {
		t.Errorf("%d bytes, %v", len(svg), err)
	}
}

// TestAccount: a run is an error if gleamd has lost packets, or has seen others.
func TestAccount(t *testing.T) {
	r := &Row{Members: 4}
	before := &api.Stats{Rx: 10, Copies: 30, Drops: map[string]uint64{"x": 1}}
	good := api.Stats{Rx: 20, Copies: 60, Drops: map[string]uint64{"x": 1}}
	for says, change := range map[string]func(*api.Stats){
		"":                     func(*api.Stats) {},
		"counted 9 packets":    func(s *api.Stats) { s.Rx-- },
		"made 31 copies":       func(s *api.Stats) { s.Copies++ },
		"dropped 2 packets: y": func(s *api.Stats) { s.Drops = map[string]uint64{"x": 1, "y": 2} },
	} {
		after := good
		change(&after)
		err := r.account(before, &after, 10)
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
