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

	"github.com/gleam-rdma/gleam/lab/labtest"
)

// maxMemory bounds a mutant that never stops asking for memory, in KiB.
const maxMemory = 6 << 20

// result is what became of a mutant.
type result struct {
	*site
	killed bool
	err    error
}

// quickTests is how long the tests may take together that are run first.
const quickTests = 25 // percent of the time of all

// warmUp runs the tests with no mutant alive, and notes how long they take. The quickest
// ones, of a small part of the whole time, are run first with each mutant: most mutants
// need no others.
func (t *target) warmUp(checks int) error {
	for range 2 { // the first run may wait for the disk
		start := time.Now()
		out, err := t.run(context.Background(), 0, checks, "-test.v")
		if err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		t.usual = time.Since(start)
		t.quick = quickest(out)
	}
	return nil
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
		tests = append(tests, test{string(m[1]), takes + 0.005}) // a hundredth is what is printed
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

// run runs the tests with mutant n.
func (t *target) run(ctx context.Context, n, checks int, flags ...string) ([]byte, error) {
	args := append([]string{"-c", fmt.Sprintf("ulimit -v %d; exec \"$@\"", maxMemory), "sh", t.program, "-test.failfast", "-test.short"}, flags...)
	if t.rapid {
		args = append(args, fmt.Sprintf("-rapid.checks=%d", checks), "-rapid.shrinktime=0s", "-rapid.nofailfile")
	}
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Dir = t.dir
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", numberEnv, n), labtest.SkipEnv+"=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	return out.Bytes(), err
}

// try says whether the tests notice a mutant. One that hangs is noticed.
func (t *target) try(s *site, checks int) result {
	quick := "^(" + strings.Join(t.quick, "|") + ")$"
	for _, flag := range []string{"-test.run=" + quick, "-test.skip=" + quick} {
		ctx, cancel := context.WithTimeout(context.Background(), 5*t.usual+5*time.Second)
		out, err := t.run(ctx, s.id, checks, flag)
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
const acceptedFile = "test/mutants/generate/accepted.txt"

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
