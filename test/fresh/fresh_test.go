// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fresh

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/debian"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// formEnv is quick for the targets without README's commands, which take as long as make test, and long for targets that
// do all that they do.
const formEnv = "GLEAM_FRESH"

// less are the variables by which a line of starts has its target do less.
var less = regexp.MustCompile(` (ARGS|BENCH|CHECKS|FUZZTIME|KEEP|MODEL|PACKAGES|PKGS|ROUNDS|RUNS)=('[^']*'|\S+)`)

// README's first commands work where nothing was installed, and nothing was done before.
func TestCommandsOfREADME(t *testing.T) {
	labtest.Part(t, "fresh")
	if os.Getenv(formEnv) == "quick" {
		t.Skip("make test-fresh runs it")
	}
	block := regexp.MustCompile("(?s)<!-- run by: make test-fresh -->\n```sh\n(.*?)```").FindStringSubmatch(read(t, "README.md"))
	if block == nil {
		t.Fatal("README.md has no block of commands that make test-fresh runs")
	}
	newMachine(t).run(t, block[1])
}

// Each target of make installs what it needs by itself, and starts what it runs.
func TestTargets(t *testing.T) {
	labtest.Part(t, "fresh")
	m := newMachine(t)
	// What was downloaded or compiled before is not what is tested here.
	shared := map[string]string{"/root/.cache/go-build": goEnv(t)["GOCACHE"], "/root/go/pkg/mod": goEnv(t)["GOMODCACHE"], "/var/cache/apt/archives": debian.Folder(t)}
	if caches, err := os.UserCacheDir(); err == nil {
		if _, err := os.Stat(caches + "/staticcheck"); err == nil {
			shared["/root/.cache/staticcheck"] = caches + "/staticcheck"
		}
	}
	quick, long := os.Getenv(formEnv) == "quick", os.Getenv(formEnv) == "long"
	for i, s := range starts {
		if long {
			s.lines, s.runs = less.ReplaceAllString(s.lines, ""), true
		}
		t.Run(s.lines, func(t *testing.T) {
			if quick && !inTurn(t, i) {
				t.Skip("make test-fresh runs it")
			}
			begin := time.Now()
			m.fork(t, shared).run(t, "export GLEAM_START="+map[bool]string{true: "1"}[!s.runs]+"; "+s.lines)
			t.Logf("took %.0f s", time.Since(begin).Seconds())
		})
	}
}

// inTurn reports whether the quick form has a line of starts: with GLEAM_SAMPLE (.ci/run) the line that it always has and
// every third of the others, so that three runs have them all.
func inTurn(t *testing.T, line int) bool {
	t.Helper()
	if starts[line].long || starts[line].always {
		return starts[line].always
	}
	before := 0
	for _, s := range starts[:line] {
		if !s.long && !s.always {
			before++
		}
	}
	return labtest.InTurn(t, before, 3)
}

// Each target of the Makefile is in a line of starts.
func TestEachTargetIsStarted(t *testing.T) {
	var started []string
	for _, s := range starts {
		started = append(started, regexp.MustCompile(`[\s;]+`).Split(s.lines, -1)...)
	}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		if m[1] != "test-fresh" && !slices.Contains(started, m[1]) {
			t.Errorf("no line of starts has make %s", m[1])
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(source, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
