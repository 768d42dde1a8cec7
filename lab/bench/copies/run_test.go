// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/bench/machine"
	"github.com/gleam-rdma/gleam/test/labtest"
)

var programs = labtest.Programs{Packages: []string{"../../../cmd/gleamd"}}

func TestMain(m *testing.M) { os.Exit(programs.Run(m)) }

func small(t *testing.T) Options {
	o := defaults()
	o.Hosts, o.Bytes, o.Rounds, o.Rate, o.Dir = 3, 3<<20, 1, 50_000_000, t.TempDir()
	o.Gleamd = programs.Path(t, "gleamd")
	return o
}

// No way is faster than the link, and copies that pass the sender's link three times take
// three times as long.
func TestRun(t *testing.T) {
	labtest.Require(t)
	o := small(t)
	o.SCP = labtest.Has(t, "/usr/sbin/sshd") && labtest.Has(t, "scp") && labtest.Has(t, "ssh-keygen")
	var say, table, json bytes.Buffer
	r, err := Run(t.Context(), o, machine.Here("test"), &say)
	if err != nil {
		t.Fatalf("%v\n%s", err, &say)
	}
	copies := map[string]float64{tcpTurns: 3, tcpAll: 3, scpTurns: 3, scpAll: 3}
	for _, x := range r.Rows {
		least := 8 * float64(o.Bytes) / float64(o.Rate) * max(copies[x.Case], 1)
		if x.Seconds < 0.8*least || x.OfOne <= 0 || x.Turns <= 0 {
			t.Errorf("%+v, and the link takes %.2f s", x, least)
		}
	}
	if err := r.writeTable(&table); err != nil || strings.Count(table.String(), "\n") != 4+len(o.cases()) {
		t.Errorf("%v\n%s", err, &table)
	}
	if err := cli.WriteJSON(&json, r); err != nil || !strings.Contains(json.String(), `"time_of_tcp_to_one_host"`) {
		t.Errorf("%v\n%s", err, &json)
	}
	if list, _ := os.ReadDir(o.Dir); len(list) != 0 {
		t.Errorf("left are %v", list)
	}
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
	if list, _ := os.ReadDir(o.Dir); len(list) != 0 {
		t.Errorf("left are %v", list)
	}
}

func TestOptions(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"":          func(*Options) {},
		"--hosts":   func(o *Options) { o.Hosts = 1 },
		"--bytes":   func(o *Options) { o.Bytes = 0 },
		"--rounds":  func(o *Options) { o.Rounds = 0 },
		"--rate":    func(o *Options) { o.Rate = 0 },
		"--mtu":     func(o *Options) { o.MTU = 1500 },
		"--without": func(o *Options) { o.Without = []string{"one host"} },
	} {
		o := defaults()
		o.SCP, o.Without = true, []string{"at once"}
		if n := len(o.cases()); n != 7 {
			t.Errorf("%d cases without two of nine", n)
		}
		change(&o)
		if err := o.check(); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want+" ") {
			t.Errorf("%s: %v", want, err)
		}
	}
}
