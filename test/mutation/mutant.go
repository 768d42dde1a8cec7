// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/test/mutation/module"
)

// mutant is one wrong version of a package.
type mutant struct {
	name    string   // a few words, unique
	rule    string   // the rule of docs/AGGREGATION.md, or a section of another document
	dir     string   // the folder of the package
	root    bool     // only tests with root's rights can notice
	changes []change // changes of its declarations
}

// words is the text that -run matches.
func (m *mutant) words() []string {
	words := []string{m.name, m.rule, m.dir}
	for _, c := range m.changes {
		words = append(words, declName(c.of))
	}
	return words
}

// result is the outcome of a mutant's run.
type result struct {
	mutant
	killers []string // tests that failed
	skipped bool     // needs root
	err     error
}

func (r *result) line() string {
	switch {
	case r.err != nil:
		return fmt.Sprintf("ERROR     %v", r.err)
	case r.skipped:
		return fmt.Sprintf("skipped   %-4s %-18s %-58s needs root", r.rule, r.dir, r.name)
	case len(r.killers) == 0:
		return fmt.Sprintf("SURVIVED  %-4s %-18s %s", r.rule, r.dir, r.name)
	}
	return fmt.Sprintf("killed    %-4s %-18s %-58s by %s", r.rule, r.dir, r.name, strings.Join(r.killers, " "))
}

// runAll tries the mutants, up to a number at a time, and sends the results in order.
func runAll(s *sources, ms []mutant, parallel int) <-chan result {
	results := make([]chan result, len(ms))
	for i := range results {
		results[i] = make(chan result, 1)
	}
	next := make(chan int)
	for range parallel {
		go func() {
			for i := range next {
				results[i] <- try(s, ms[i])
			}
		}()
	}
	out := make(chan result)
	go func() {
		for i := range ms {
			next <- i
		}
		close(next)
	}()
	go func() {
		for _, c := range results {
			out <- <-c
		}
		close(out)
	}()
	return out
}

// suites are the tests that may notice a mutant: those of the package itself and, if it
// survives these, those of the model checker, of the control loop or of the architecture.
func suites(m *mutant) []string {
	s := module.Suites(m.dir)
	if m.rule == "user" { // a text that stands in several places
		s = append(s, "test/arch")
	}
	return s
}

func try(s *sources, m mutant) (r result) {
	r.mutant = m
	if m.root && os.Getuid() != 0 {
		r.skipped = true
		return r
	}
	files, err := m.changed(s)
	if err != nil {
		r.err = err
		return r
	}
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		r.err = fmt.Errorf("%s: %w", m.name, err)
		return r
	}
	defer os.RemoveAll(dir)
	overlay, err := writeOverlay(dir, s.root, files)
	if err != nil {
		r.err = fmt.Errorf("%s: %w", m.name, err)
		return r
	}
	for _, pkg := range suites(&m) {
		r.killers, r.err = s.test(overlay, pkg)
		if r.err != nil {
			r.err = fmt.Errorf("%s: %w", m.name, r.err)
		}
		if r.err != nil || len(r.killers) > 0 {
			break
		}
	}
	return r
}

// writeOverlay writes the file for go's -overlay, by which files replace others.
func writeOverlay(dir, root string, files map[string][]byte) (string, error) {
	root, err := filepath.Abs(root) // programs that tests build have other working directories
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for path, src := range files {
		copied := filepath.Join(dir, fmt.Sprintf("mutant%d.go", len(replace)))
		if err := os.WriteFile(copied, src, 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, path)] = copied
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, b, 0o600)
}

var (
	failed  = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
	timeout = regexp.MustCompile(`(?m)^panic: test timed out[^\n]*\n(\s*running tests:\n(?:\t\t[^\n]*\n)*)?`)
	running = regexp.MustCompile(`(?m)^\t\t(\w+) \(`)
	took    = regexp.MustCompile(`(?m)^ok\s+\S+\s+([0-9.]+s)`)
	noBuild = regexp.MustCompile(`\[(build|setup) failed\]`)
)

// limits bound the time of tests that may hang.
type limits struct {
	suite time.Duration // the first limit of a package's tests
	more  time.Duration // the time of a test alone above ten times what it takes without the mutant
}

// usual are the limits of declared mutants.
var usual = limits{suite: time.Minute, more: 20 * time.Second}

// test runs the tests of a package and returns those that failed or hang. The clock judges no suite, which may be
// slow: one that outlasts its limit gets more time unless a test that was running hangs alone.
func (s *sources) test(overlay, pkg string) ([]string, error) {
	for limit := s.limits.suite; limit < time.Hour; limit *= 4 {
		r := s.goTest(overlay, pkg, "", limit)
		if !r.late {
			return r.killers, r.err
		}
		for _, name := range r.running {
			alone := "^" + name + "$"
			usually := s.goTest("", pkg, alone, 10*time.Minute)
			if usually.took == 0 {
				return nil, fmt.Errorf("%s without a mutant: %v %w", name, usually.killers, usually.err)
			}
			r := s.goTest(overlay, pkg, alone, s.limits.more+10*usually.took)
			if r.late {
				return []string{name + " (hangs)"}, nil
			}
			if r.took == 0 {
				return r.killers, r.err
			}
		}
	}
	return nil, fmt.Errorf("the tests of %s do not end, and none of them hangs alone", pkg)
}

// outcome is that of go test.
type outcome struct {
	killers []string      // tests that failed
	late    bool          // none had failed when the time was up
	running []string      // tests that were running then
	took    time.Duration // the time of tests that passed, 0 unless all did
	err     error         // why there is no verdict
}

// goTest runs tests of a package with an overlay, if any. Random tests do not shrink their findings.
func (s *sources) goTest(overlay, pkg, tests string, limit time.Duration) (r outcome) {
	args := []string{"test", "-vet=off", "-ldflags=-w", "-count=1", "-run=" + tests, "-timeout=" + limit.String(), "./" + pkg}
	if !s.every {
		args = append(args, "-failfast")
	}
	if usesRapid(s.root, pkg) {
		args = append(args, "-rapid.shrinktime=0s", "-rapid.nofailfile")
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = s.root
	if overlay != "" {
		cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay)) // also for the programs that tests build
	}
	out, err := cmd.CombinedOutput()
	for _, m := range failed.FindAllSubmatch(out, -1) {
		r.killers = append(r.killers, string(m[1]))
	}
	late, passed := timeout.FindSubmatch(out), took.FindSubmatch(out)
	switch {
	case err == nil && passed != nil:
		r.took, r.err = time.ParseDuration(string(passed[1]))
		r.took++ // a test may take 0.000 s
	case late != nil && len(r.killers) == 0:
		r.late = true
		for _, m := range running.FindAllSubmatch(late[1], -1) {
			r.running = append(r.running, string(m[1]))
		}
	case err != nil && (len(r.killers) == 0 || noBuild.Match(out)):
		r.err = fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return r
}

// usesRapid reports whether the tests of a package have rapid's flags.
func usesRapid(root, pkg string) bool {
	files, _ := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(`"pgregory.net/rapid"`)) {
			return true
		}
	}
	return false
}
