// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/internal/cli"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// gleam is the program as a process of its own.
type gleam struct {
	*exec.Cmd
	t      *testing.T
	out    bytes.Buffer
	say    *labtest.Output
	ended  chan struct{}
	result error // valid after ended
}

// start runs gleam with args. say.seen is closed when it has written text to
// standard error.
func start(t *testing.T, text string, as *syscall.Credential, args ...string) *gleam {
	t.Helper()
	return startTyped(t, nil, text, as, args...)
}

// startTyped is start with what is typed.
func startTyped(t *testing.T, typed *os.File, text string, as *syscall.Credential, args ...string) *gleam {
	t.Helper()
	g := &gleam{Cmd: exec.Command(programs.Path(t, "gleam"), args...), t: t, say: labtest.NewOutput(text), ended: make(chan struct{})}
	g.Stdout, g.Stderr = &g.out, g.say
	if typed != nil {
		g.Stdin = typed
	}
	g.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: as}
	g.WaitDelay = 5 * time.Second
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		g.result = g.Wait()
		close(g.ended)
	}()
	t.Cleanup(func() {
		_ = g.Process.Kill()
		<-g.ended
	})
	return g
}

// until waits for say.seen.
func (g *gleam) until() {
	g.t.Helper()
	select {
	case <-g.say.Seen:
	case <-g.ended:
		g.t.Fatalf("ended early: %v\n%s", g.result, g.say)
	case <-time.After(30 * time.Second):
		g.t.Fatalf("not within 30 s\n%s", g.say)
	}
}

// code waits for the end and returns the exit code; -1 if killed.
func (g *gleam) code() int {
	g.t.Helper()
	select {
	case <-g.ended:
	case <-time.After(60 * time.Second):
		g.t.Fatalf("still running\n%s", g.say)
	}
	return g.ProcessState.ExitCode()
}

// children returns the processes that g has started.
func (g *gleam) children() (pids []int) {
	g.t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", g.Process.Pid))
	if err != nil {
		g.t.Fatal(err)
	}
	for _, f := range files {
		b, _ := os.ReadFile(f) // the thread may have ended
		for s := range strings.FieldsSeq(string(b)) {
			pid, err := strconv.Atoi(s)
			if err != nil {
				g.t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// gone waits until none of the processes is there.
func gone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		for end := time.Now().Add(10 * time.Second); !errors.Is(unix.Kill(pid, 0), unix.ESRCH); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("process %d is still there", pid)
			}
		}
	}
}

// startLong starts a demo that takes much longer than any test waits, and returns it once
// its group is registered, with its children: gleamd.
func startLong(t *testing.T) (g *gleam, pids []int) {
	labtest.Require(t)
	g = start(t, "registered", nil, long(t)...)
	g.until()
	if pids = g.children(); len(pids) != 1 {
		t.Errorf("children %v, want gleamd alone", pids)
	}
	return g, pids
}

// long are the arguments of a demo that takes much longer than any test waits.
func long(t *testing.T) []string {
	return []string{"demo", "--gleamd", programs.Path(t, "gleamd"), "--size", "64MiB", "--loss", "0.2"}
}

func TestInterrupted(t *testing.T) {
	g, pids := startLong(t)
	if err := g.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if c := g.code(); c != cli.ExitInterrupted {
		t.Errorf("exit code %d, want %d", c, cli.ExitInterrupted)
	}
	if lines := strings.Split(strings.TrimSpace(g.say.String()), "\n"); lines[len(lines)-1] != "gleam: interrupted" {
		t.Errorf("the last line is %q", lines[len(lines)-1])
	}
	gone(t, pids)
	nothingLeft(t, g.Process.Pid)
	if g.out.Len() > 0 {
		t.Errorf("there is a result:\n%s", &g.out)
	}
}

// Killed, it cannot clean up: the kernel ends gleamd and the namespaces with it,
// and the next demo removes the files.
func TestKilled(t *testing.T) {
	g, pids := startLong(t)
	dir := filepath.Join(runDir, fmt.Sprintf("run-%d", g.Process.Pid))
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("there will be nothing to clean up: %v", err)
	}
	if err := g.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	g.code()
	gone(t, pids)
	next := start(t, "", nil, "demo", "--gleamd", programs.Path(t, "gleamd"), "--size", "100KiB", "--members", "2", "-o", "json")
	if c := next.code(); c != 0 {
		t.Errorf("the next demo: exit code %d\n%s", c, next.say)
	}
	nothingLeft(t, g.Process.Pid)
	nothingLeft(t, next.Process.Pid)
	var res Result
	if err := json.Unmarshal(next.out.Bytes(), &res); err != nil || !res.OK {
		t.Errorf("%v:\n%s", err, &next.out)
	}
}

func TestKeepAndRemove(t *testing.T) {
	labtest.Require(t)
	g := start(t, "", nil, "demo", "--gleamd", programs.Path(t, "gleamd"), "--size", "100KiB", "--members", "3", "--keep", "-o", "json")
	if c := g.code(); c != 0 {
		t.Fatalf("exit code %d\n%s", c, g.say)
	}
	var res Result
	if err := json.Unmarshal(g.out.Bytes(), &res); err != nil || !res.OK || res.Kept == "" {
		t.Fatalf("%v:\n%s", err, &g.out)
	}
	removed := false
	remove := func() *gleam {
		removed = true
		return start(t, "", nil, "demo", "--remove", res.Kept)
	}
	t.Cleanup(func() {
		if !removed {
			remove().code()
		}
	})
	socket := testbed.SocketIn(keptDir(res.Kept))
	if !strings.Contains(g.say.String(), socket) || !strings.Contains(g.say.String(), "--remove "+res.Kept) {
		t.Errorf("it does not say what to look at:\n%s", g.say)
	}
	show := start(t, "", nil, "--socket", socket, "group", "show", res.Group, "-o", "json")
	if c := show.code(); c != 0 || !strings.Contains(show.out.String(), "10.77.0.3") {
		t.Errorf("group show: exit code %d\n%s%s", c, &show.out, show.say)
	}
	// A later demo does not touch it.
	other := start(t, "", nil, "demo", "--gleamd", programs.Path(t, "gleamd"), "--size", "1KiB", "--members", "2", "-o", "json")
	if c := other.code(); c != 0 {
		t.Errorf("a demo beside it: exit code %d\n%s", c, other.say)
	}
	if _, err := os.Stat("/run/netns/" + res.Kept + "-sw"); err != nil {
		t.Errorf("the lab is not kept: %v", err)
	}
	if r := remove(); r.code() != 0 {
		t.Errorf("remove: %s", r.say)
	}
	nothingLeft(t, g.Process.Pid)
	if r := remove(); r.code() != 1 || !strings.Contains(r.say.String(), res.Kept) {
		t.Errorf("removed twice: %s", r.say)
	}
}

// One line names the user's remedy, with another exit code for a wrong command line.
func TestRefusals(t *testing.T) {
	labtest.Require(t)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		as   *syscall.Credential
		args []string
		code int
		says []string
	}{
		{"not root", &syscall.Credential{Uid: 65534, Gid: 65534}, nil, 1, []string{"needs root", "sudo " + programs.Path(t, "gleam") + " demo"}},
		{"missing file", nil, []string{"--file", empty + "x"}, 1, []string{"--file", empty + "x"}},
		{"empty file", nil, []string{"--file", empty}, 1, []string{"--file", "not empty"}},
		{"one member", nil, []string{"--members", "1"}, 2, []string{"--members 1", "2 to 128"}},
		{"no size", nil, []string{"--size", "much"}, 2, []string{`"much" is no size`}},
		{"odd path MTU", nil, []string{"--mtu", "1500"}, 2, []string{"--mtu 1500"}},
		{"odd operation", nil, []string{"--op", "read"}, 2, []string{"read", "write-imm"}},
		{"an argument", nil, []string{"file"}, 2, []string{"--file"}},
		{"no such lab", nil, []string{"--remove", "demo0"}, 1, []string{"demo0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := start(t, "", c.as, append([]string{"demo"}, c.args...)...)
			if code := g.code(); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			said := strings.TrimSpace(g.say.String())
			complaint := ""
			for l := range strings.Lines(said) {
				if strings.HasPrefix(l, "gleam: ") {
					complaint += l
				}
			}
			if strings.Count(complaint, "gleam: ") != 1 {
				t.Errorf("want one line of complaint in\n%s", said)
			}
			for _, s := range c.says {
				if !strings.Contains(complaint, s) {
					t.Errorf("want %q in\n%s", s, said)
				}
			}
			nothingLeft(t, g.Process.Pid)
		})
	}
}
