// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeGo is a go command with one package and one fuzz target. Its run n of the target
// prints the file n, and fails if the file n.ok is not there.
const fakeGo = `#!/bin/sh
cd "$(dirname "$0")"
case "$*" in
list*) echo example.org/x ;;
*-list*) echo FuzzX; echo ok example.org/x 0.1s ;;
*) echo run >>runs
	n=$(wc -l <runs)
	cat $n
	[ -e $n.ok ] ;;
esac
`

// TestFuzzScriptRetries: scripts/fuzz runs a target again if Go's fuzzing fails at the end
// of its time, with that message alone, and once only. A failure of the target ends the run.
func TestFuzzScriptRetries(t *testing.T) {
	const (
		progress = "fuzz: elapsed: 0s, gathering baseline coverage: 0/3 completed\nfuzz: elapsed: 4s, execs: 9 (2/sec), new interesting: 0 (total: 3)\n"
		deadline = progress + "--- FAIL: FuzzX (4.06s)\n    context deadline exceeded\nFAIL\nexit status 1\nFAIL\texample.org/x\t4.071s\n"
		passes   = progress + "PASS\nok  \texample.org/x\t4.1s\n"
		seed     = "--- FAIL: FuzzX (0.03s)\n    --- FAIL: FuzzX/seed#0 (0.00s)\n        x_test.go:9: context deadline exceeded\nFAIL\nexit status 1\nFAIL\texample.org/x\t0.04s\n"
		crasher  = progress + "--- FAIL: FuzzX (0.03s)\n    --- FAIL: FuzzX (0.00s)\n        x_test.go:9: wrong\n    \n    Failing input written to testdata/fuzz/FuzzX/1\nFAIL\nexit status 1\nFAIL\texample.org/x\t0.04s\n"
		hung     = "--- FAIL: FuzzX (4.06s)\n    context deadline exceeded\n    fuzzing process hung or terminated unexpectedly: exit status 2\nFAIL\nexit status 1\nFAIL\texample.org/x\t4.1s\n"
		other    = "--- FAIL: FuzzY (4.06s)\n    context deadline exceeded\nFAIL\nexit status 1\nFAIL\texample.org/x\t4.1s\n"
	)
	for name, c := range map[string]struct {
		outputs []string // of each run; only passes is one without a failure
		ok      bool
	}{
		"passes":                       {[]string{passes}, true},
		"the deadline":                 {[]string{deadline, passes}, true},
		"the deadline twice":           {[]string{deadline, deadline}, false},
		"a crasher":                    {[]string{crasher}, false},
		"the deadline, then a crasher": {[]string{deadline, crasher}, false},
		"a seed with these words":      {[]string{seed}, false},
		"a worker that hangs":          {[]string{hung}, false},
		"another target":               {[]string{other}, false},
		"nothing":                      {[]string{""}, false},
	} {
		dir := t.TempDir()
		write := func(file, text string, mode os.FileMode) {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), mode); err != nil {
				t.Fatal(err)
			}
		}
		write("go", fakeGo, 0o755)
		for i, out := range append(c.outputs, passes) {
			n := string(rune('1' + i))
			if write(n, out, 0o644); out == passes {
				write(n+".ok", "", 0o644)
			}
		}
		cmd := exec.Command("../../scripts/fuzz", "4s", "./x")
		cmd.Env = append(os.Environ(), "GO="+filepath.Join(dir, "go"))
		out, err := cmd.CombinedOutput()
		runs, _ := os.ReadFile(filepath.Join(dir, "runs"))
		if n := strings.Count(string(runs), "run"); (err == nil) != c.ok || n != len(c.outputs) {
			t.Errorf("%s: %v after %d runs, want success %v after %d\n%s", name, err, n, c.ok, len(c.outputs), out)
		}
	}
}
