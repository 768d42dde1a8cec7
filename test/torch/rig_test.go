// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package torch tests module gleam_torch with Debian's torch: a rank in each host of a star, and gleamd.
package torch

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/config/linkrate"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/lab/testbed"
	"github.com/gleam-rdma/gleam/test/bedtest"
	"github.com/gleam-rdma/gleam/test/labtest"
)

var programs = labtest.Programs{Packages: []string{"../../cmd/gleamd", "../../cmd/gleam"}}

func TestMain(m *testing.M) { os.Exit(programs.Run(m)) }

const (
	python  = "/usr/bin/python3" // Debian's
	torchIn = "/usr/lib/python3/dist-packages/torch"
)

// line is what a rank prints: a word, and values.
type line struct {
	rank   int
	of     *lab.Process
	word   string
	values []any
	at     time.Time
}

func (l line) number(i int) float64 { return l.values[i].(float64) }

func (l line) String() string { return fmt.Sprintf("rank %d: %s %v", l.rank, l.word, l.values) }

// job is a star with a gleamd, and ranks.
type job struct {
	t     *testing.T
	bed   *testbed.Testbed
	env   []string
	hosts []int // the host of each rank, where several are in one
	ranks []*lab.Process
	lines chan line
	dir   string
}

// newJob makes a star, without ranks. Rate bounds what each host sends.
func newJob(t *testing.T, hosts int, rate linkrate.Rate, env ...string) *job {
	t.Helper()
	labtest.Part(t, "torch")
	labtest.Needs(t, python, torchIn)
	bed := bedtest.Star(t, testbed.Config{Gleamd: programs.Path(t, "gleamd"), Star: lab.StarConfig{Hosts: hosts, Rate: rate, MTU: 4200}})
	j := &job{t: t, bed: bed, dir: t.TempDir(), ranks: make([]*lab.Process, hosts), lines: make(chan line, 1<<16)}
	key, folder := filepath.Join(j.dir, "key"), absolute(t, "../../host/libgleam/python")
	if err := os.WriteFile(key, []byte(hex.EncodeToString(bed.Key)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	j.env = append(os.Environ(), append([]string{
		"PYTHONPATH=" + folder, "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1", "GLEAM_KEY_FILE=" + key, "GLEAM_HELPER=" + programs.Path(t, "gleam"),
		"GLEAM_INTERFACE=" + lab.HostInterface, "GLOO_SOCKET_IFNAME=" + lab.HostInterface, "GLEAM_GROUPS=" + lab.StarGroupsIPv4.String(),
		"MASTER_ADDR=" + bed.Star.Hosts[0].IPv4.String(), "MASTER_PORT=29511", "STOP=" + j.stop(), fmt.Sprintf("WORLD_SIZE=%d", hosts),
	}, env...)...)
	return j
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	a, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// stop is the file whose existence ends updates.
func (j *job) stop() string { return filepath.Join(j.dir, "stop") }

// start starts a rank of a scene.
func (j *job) start(n int, args ...string) *lab.Process {
	j.t.Helper()
	return j.run(n, exec.Command(python, append([]string{absolute(j.t, "testdata/worker.py")}, args...)...))
}

// run starts a program as a rank.
func (j *job) run(n int, c *exec.Cmd) *lab.Process {
	j.t.Helper()
	return j.runAs(n, n, c)
}

// place has ranks in hosts.
func (j *job) place(hosts ...int) {
	j.hosts, j.ranks = hosts, make([]*lab.Process, len(hosts))
	j.env = append(j.env, fmt.Sprintf("WORLD_SIZE=%d", len(hosts)))
}

// runAs starts a program as a rank in host n, or in that of rank n.
func (j *job) runAs(n, rank int, c *exec.Cmd) *lab.Process {
	j.t.Helper()
	c.Env = append(slices.Clone(j.env), fmt.Sprintf("RANK=%d", rank))
	r, w := io.Pipe()
	c.Stdout = w
	host := n
	if j.hosts != nil {
		host = j.hosts[n]
	}
	x, err := j.bed.Star.Hosts[host].NS.Start(c)
	if err != nil {
		j.t.Fatal(err)
	}
	j.ranks[n] = x
	go func() {
		s := bufio.NewScanner(r)
		for s.Scan() {
			word, rest, _ := strings.Cut(s.Text(), " ")
			l := line{rank: n, of: x, word: word, at: time.Now()}
			if json.Unmarshal([]byte(rest), &l.values) == nil {
				j.lines <- l
			}
		}
	}()
	go func() { <-x.Done(); _ = w.Close() }()
	j.t.Cleanup(func() {
		_ = x.Stop(time.Second)
		if text := x.Output(); j.t.Failed() {
			j.t.Logf("rank %d: %s", n, text[max(0, len(text)-3000):])
		}
	})
	return x
}

func (j *job) startAll(args ...string) {
	j.t.Helper()
	for n := range j.ranks {
		j.start(n, args...)
	}
}

// next returns the next line of any rank.
func (j *job) next(within time.Duration) line {
	j.t.Helper()
	select {
	case l := <-j.lines:
		return l
	case <-time.After(within):
		j.t.Fatalf("no rank has said anything for %v", within)
		return line{}
	}
}

// ended waits until all ranks have ended well, and returns what they said.
func (j *job) ended(within time.Duration) (all []line) {
	j.t.Helper()
	deadline := time.After(within)
	for n, x := range j.ranks {
		select {
		case <-x.Done():
			if err := x.Wait(); err != nil {
				j.t.Errorf("rank %d: %v", n, err)
			}
		case <-deadline:
			j.t.Fatalf("rank %d has not ended after %v", n, within)
		}
	}
	for {
		select {
		case l := <-j.lines:
			all = append(all, l)
		case <-time.After(100 * time.Millisecond):
			return all
		}
	}
}

// kill ends a rank without a chance to do anything, with its helper or without.
func (j *job) kill(n int, helper bool) {
	j.t.Helper()
	x := j.ranks[n]
	if helper {
		for _, pid := range children(x.PID()) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_ = x.Signal(syscall.SIGKILL)
	<-x.Done()
}

// children are the processes that a process has started, by whichever of its threads.
func children(pid int) (all []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		for w := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(w); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}
