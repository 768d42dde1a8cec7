// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/test/labtest"
)

// maxMemory bounds a mutant that never stops asking for memory, in KiB.
const maxMemory = 6 << 20

// result is the outcome of a mutant's run.
type result struct {
	*site
	killed bool
	err    error
}

// quickTests bounds the time of the tests that run first, all together.
const quickTests = 25 // percent of the time of all

// warmUp runs the tests without a mutant, and records their times. The quickest tests,
// which take a small part of the whole time, run first with each mutant: they notice most
// mutants.
func (t *suite) warmUp(checks int) error {
	for range 2 { // the first run may wait for the disk
		start := time.Now()
		out, cpu, err := t.run(context.Background(), 0, checks, "-test.v")
		if err != nil {
			return fmt.Errorf("%s with no mutant alive: %w\n%s", t.name, err, failures(out))
		}
		t.usual, t.usualCPU = time.Since(start), cpu
		t.quick = quickest(out)
	}
	return nil
}

var fails = regexp.MustCompile(`(?m)^\s*--- FAIL`)

// failures returns the output from the first failed test on.
func failures(out []byte) []byte {
	at := fails.FindIndex(out)
	if at == nil {
		return out
	}
	return out[max(0, bytes.LastIndex(out[:at[0]], []byte("\n=== RUN   "))):]
}

var passed = regexp.MustCompile(`(?m)^--- PASS: (\w+) \(([0-9.]+)s\)`)

// quickest returns the names of the quickest tests.
func quickest(out []byte) (names []string) {
	type test struct {
		name  string
		takes float64
	}
	var tests []test
	all := 0.0
	for _, m := range passed.FindAllSubmatch(out, -1) {
		takes, _ := strconv.ParseFloat(string(m[2]), 64)
		tests = append(tests, test{string(m[1]), takes + 0.005}) // printed are hundredths
		all += takes + 0.005
	}
	slices.SortStableFunc(tests, func(a, b test) int { return cmp.Compare(a.takes, b.takes) })
	sum := 0.0
	for _, x := range tests {
		if sum += x.takes; sum > all*quickTests/100 {
			break
		}
		names = append(names, x.name)
	}
	return names
}

// limits bounds the time of the tests with a mutant. The CPU time ends a mutant that
// loops; it does not depend on other load of the machine. The real time ends a mutant
// that sleeps.
func (t *suite) limits() (cpuSeconds int, real time.Duration) {
	if t.usual == 0 {
		return 600, 10 * time.Minute // for the run that measures
	}
	return 2 + int((4 * t.usualCPU).Seconds()), 10*t.usual + 20*time.Second
}

// run runs the tests with mutant n, and returns their output and CPU time.
func (t *suite) run(ctx context.Context, n, checks int, flags ...string) ([]byte, time.Duration, error) {
	cpuSeconds, _ := t.limits()
	args := append([]string{"-c", fmt.Sprintf("ulimit -v %d; ulimit -t %d; exec \"$@\"", maxMemory, cpuSeconds), "sh", t.program, "-test.failfast", "-test.short"}, flags...)
	if t.rapid {
		args = append(args, fmt.Sprintf("-rapid.checks=%d", checks), "-rapid.shrinktime=0s", "-rapid.nofailfile")
	}
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Dir = t.dir()
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", numberEnv, n), labtest.SkipEnv+"=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return nil, 0, err
	}
	return out.Bytes(), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), err
}

// stages are the flags of the runs of the tests with a mutant of a file: the quick tests,
// then the others, and before each the one of them that has noticed the last mutant of
// this file. The last two are all tests.
func (t *suite) stages(file string) (flags []string) {
	t.mu.Lock()
	last := t.noticed[file]
	t.mu.Unlock()
	quick := "^(" + strings.Join(t.quick, "|") + ")$"
	for i, all := range []string{"-test.run=" + quick, "-test.skip=" + quick} {
		if last[i] != "" {
			flags = append(flags, "-test.run=^"+last[i]+"$")
		}
		flags = append(flags, all)
	}
	return flags
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

// note records the test that has noticed a mutant of a file, by its output.
func (t *suite) note(file string, out []byte) {
	m := failed.FindSubmatch(out)
	if m == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	name, last := string(m[1]), t.noticed[file]
	if slices.Contains(t.quick, name) {
		last[0] = name
	} else {
		last[1] = name
	}
	t.noticed[file] = last
}

// try reports whether the tests notice a mutant: those of its package, then the others.
func (t *target) try(s *site, checks int) result {
	for _, suite := range t.suites {
		if err := suite.ready(checks); err != nil {
			return result{site: s, err: err}
		}
		if r := suite.try(s, checks); r.killed || r.err != nil {
			return r
		}
	}
	return result{site: s}
}

// try reports whether the tests notice a mutant. A mutant that hangs counts as noticed.
func (t *suite) try(s *site, checks int) result {
	for _, flag := range t.stages(s.file) {
		_, limit := t.limits()
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		out, _, err := t.run(ctx, s.id, checks, flag)
		t.note(s.file, out)
		late := ctx.Err() != nil
		cancel()
		var exit *exec.ExitError
		switch {
		case err == nil:
			continue
		case errors.As(err, &exit), late:
			return result{site: s, killed: true}
		}
		return result{site: s, err: fmt.Errorf("%s: %w\n%s", s.key(), err, out)}
	}
	return result{site: s}
}

// tryAll tries mutants, some at a time, and sends the results in order.
func (t *target) tryAll(sites []*site, parallel, checks int) <-chan result {
	slots := make([]chan result, len(sites))
	for i := range slots {
		slots[i] = make(chan result, 1)
	}
	next := make(chan int, len(sites))
	for i := range sites {
		next <- i
	}
	close(next)
	for range parallel {
		go func() {
			for i := range next {
				slots[i] <- t.try(sites[i], checks)
			}
		}()
	}
	out := make(chan result)
	go func() {
		defer close(out)
		for _, c := range slots {
			out <- <-c
		}
	}()
	return out
}

// acceptedFile lists the mutants that make no difference, each with the reason.
const acceptedFile = "test/mutation/generate/accepted.txt"

// readAccepted reads lines of a key, a tab and a reason.
func readAccepted(path string) (map[string]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	for i, line := range strings.Split(string(b), "\n") {
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		key, reason, ok := strings.Cut(line, "\t")
		if !ok || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s:%d: want a key, a tab and a reason", path, i+1)
		}
		if known[key] != "" {
			return nil, fmt.Errorf("%s:%d: a second line for %s", path, i+1, key)
		}
		known[key] = strings.TrimSpace(reason)
	}
	return known, nil
}
