// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/test/bedtest"
	"github.com/gleam-rdma/gleam/test/labtest"
	"github.com/gleam-rdma/gleam/test/terminal"
)

var programs = labtest.Programs{Packages: []string{"../../../cmd/gleamd", "../../../cmd/gleam"}}

func TestMain(m *testing.M) { os.Exit(programs.Run(m)) }

var labGroup = netip.MustParseAddr("10.77.254.1")

// flowing is a switch with a group in which data flows until the test ends.
func flowing(t *testing.T) *testbed.Testbed {
	t.Helper()
	b := bedtest.Star(t, testbed.Config{Star: lab.StarConfig{Hosts: 3}, Gleamd: programs.Path(t, "gleamd")})
	all := bedtest.Open(t, b.Star.Hosts, testbed.Endpoints{Key: b.Key, Device: soft.Config{Rate: 20_000_000}, Memory: 1 << 16})
	join, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	groups, err := testbed.Join(join, endpoint.MasterConfig{GroupIP: labGroup, PathMTU: 1024, WindowBase: 0x5000_0000_0000}, all)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- testbed.Repeat(ctx, groups[0], all[0].Memory) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := session.Leave(groups); err != nil {
			t.Error(err)
		}
	})
	return b
}

// TestTerminal looks at a group with data in a terminal, by keys.
func TestTerminal(t *testing.T) {
	b := flowing(t)
	x := terminal.New(t, 24, "", programs.Path(t, "gleam"), "--socket", b.Socket(), "top", "-d", "200ms")
	x.See("groups", "1 groups, 0 stalled", "10.77.254.1  running", "no room for: SOURCE, WORKER", "q quit")
	x.Keys("Enter")
	x.See("members", "group 10.77.254.1  running  policy strict  source 10.77.0.1", "10.77.0.2  receiver  yes   0x", "10.77.0.3  receiver")
	x.Keys("Down", "Enter")
	x.See("a member", "member        10.77.0.2, QPN 0x", "location      port p2", "packets/s")
	x.Keys("Escape")
	x.See("members again", "-- members")
	x.Keys("Tab")
	x.See("ports", "-- ports", "p3    up", "native")
	x.Keys("/", "p", "2", "Enter")
	if screen := x.See("a filter", "p2    up", "/p2"); strings.Contains(screen, "p3    up") {
		t.Errorf("the filter shows another row:\n%s", screen)
	}
	x.Keys("g")
	x.Keys("s", "s")
	x.See("sorting", "-- groups, by STATE")
	x.Tmux("resize-window", "-x", "120", "-y", "30")
	x.See("a wider window", "SOURCE", "WORKER")
	x.Tmux("resize-window", "-x", "160", "-y", "30")
	x.See("ports beside groups", "PORT  STATE", "p3    up", "RATE SO FAR")
	x.Tmux("resize-window", "-x", "40", "-y", "10")
	x.See("a narrow window", "10.77.254.1", "no room for: ")
	if err := b.Star.Switch.SetDown("p3"); err != nil {
		t.Fatal(err)
	}
	x.Tmux("resize-window", "-x", "80", "-y", "24")
	x.See("a port that is down stops the group", "* 10.77.254.1  stall", "10.77.0.3")
	if color := x.Tmux("capture-pane", "-p", "-e"); !strings.Contains(color, "\x1b[31m") && !strings.Contains(color, "\x1b[7;31m") && !strings.Contains(color, ";31m") && !strings.Contains(color, "[31") {
		t.Errorf("nothing is red: %q", color)
	}
	if err := b.Star.Switch.SetUp("p3"); err != nil {
		t.Fatal(err)
	}
	x.See("it goes on", "10.77.254.1  running")
	x.Keys("q")
	x.See("the end", "ended 0")
}

// With NO_COLOR there are none, and ctrl+c ends it.
func TestTerminalWithoutColours(t *testing.T) {
	b := flowing(t)
	if err := b.Star.Switch.SetDown("p3"); err != nil {
		t.Fatal(err)
	}
	x := terminal.New(t, 24, "NO_COLOR=1", programs.Path(t, "gleam"), "--socket", b.Socket(), "top", "-d", "200ms")
	x.See("a stall", "* 10.77.254.1  stall")
	if screen := x.Tmux("capture-pane", "-p", "-e"); strings.Contains(screen, "31m") {
		t.Errorf("there is red: %q", screen)
	}
	if err := b.Star.Switch.SetUp("p3"); err != nil {
		t.Fatal(err)
	}
	x.See("it goes on", "10.77.254.1  running")
	x.Keys("C-c")
	x.See("the end", "ended ")
}

// Samples are printed for scripts, with rates from the first one on.
func TestBatch(t *testing.T) {
	b := flowing(t)
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(programs.Path(t, "gleam"), append([]string{"--socket", b.Socket(), "top", "-d", "300ms"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", args, err, out)
		}
		return string(out)
	}
	if out := run("--once", "--sort", "lag"); !strings.Contains(out, "GROUP        STATE") || !strings.Contains(out, "10.77.254.1  running  10.77.0.1") || !strings.Contains(out, "PORT") || strings.Contains(out, "\x1b") {
		t.Error(out)
	}
	if out := run("-n", "2", labGroup.String()); strings.Count(out, "10.77.0.3  receiver") != 2 || strings.Contains(out, "RX/s") {
		t.Error(out)
	}
	var s Sample
	if err := json.Unmarshal([]byte(run("-o", "json")), &s); err != nil || len(s.Groups) != 1 || s.Groups[0].Rates == nil || s.Groups[0].Rates.DataIn <= 0 || s.Groups[0].BitRate <= 0 || len(s.Ports) != 3 || s.Ports[0].RxRate <= 0 {
		t.Errorf("%v: %+v", err, s)
	}
	for _, c := range []struct{ args, want string }{
		{"", "standard output is no terminal"}, {"--sort none", "no table has a column of that title"}, {"x", "is not an IP address"}, {"-d 1ms", "want 100ms or more"}, {"--once -n 3", "want a number of samples"}, {"a b", "takes one argument"},
	} {
		out, err := exec.Command(programs.Path(t, "gleam"), append([]string{"--socket", b.Socket(), "top"}, strings.Fields(c.args)...)...).CombinedOutput()
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 2 || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v: %s", c.args, err, out)
		}
	}
}
