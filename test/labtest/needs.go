// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// PartEnv is the environment variable with the part of the project whose tests run: a mode
// of scripts/test.
const PartEnv = "GLEAM_PART"

// InPart says whether the tests of one of these parts run.
func InPart(parts ...string) bool { return slices.Contains(parts, os.Getenv(PartEnv)) }

// Part skips the test unless one of these parts runs.
func Part(t testing.TB, parts ...string) {
	t.Helper()
	if !InPart(parts...) {
		t.Skipf("scripts/test %s runs it", strings.Join(parts, " or "))
	}
}

// InTurn says whether case k runs: all cases do, and with GLEAM_SAMPLE (.ci/run) every n-th, so that n runs of it have each once.
func InTurn(t testing.TB, k, n int) bool {
	t.Helper()
	text := os.Getenv("GLEAM_SAMPLE")
	if text == "" {
		return true
	}
	sample, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("GLEAM_SAMPLE: %v", err)
	}
	return k%n == sample%n
}

// Needs makes the test Unavailable unless each thing is there: a program, or a file by its
// absolute path. The table scripts/packages has what a minimal Debian lacks, with the parts that install it.
func Needs(t testing.TB, things ...string) {
	t.Helper()
	if missing := missingOf(things); len(missing) > 0 {
		Unavailable(t, "%s is missing; type: scripts/need %[1]s", strings.Join(missing, " "))
	}
}

// Has says whether a thing is there that a test can do without. Where nothing may be
// skipped the test fails without it.
func Has(t testing.TB, thing string) bool {
	t.Helper()
	if len(missingOf([]string{thing})) == 0 {
		return true
	}
	if os.Getenv(RequireEnv) == "1" {
		t.Errorf("%s is missing; type: scripts/need %[1]s", thing)
	}
	t.Logf("NOTE: %s is missing, so its part of the test is NOT run", thing)
	return false
}

func missingOf(things []string) (missing []string) {
	for _, thing := range things {
		var err error
		if strings.HasPrefix(thing, "/") {
			_, err = os.Stat(thing)
		} else {
			_, err = exec.LookPath(thing)
		}
		if err != nil {
			missing = append(missing, thing)
		}
	}
	return missing
}
