// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeGo is a go command with one package and one fuzz target. Run n of the target's program
// prints the file n, and fails if the file n.ok is not there.
const fakeGo = `#!/bin/sh
folder=$(cd "$(dirname "$0")" && pwd)
case "$*" in
env*) echo "$folder" ;;
list*) cat "$folder/packages" 2>/dev/null || echo example.org/x "$folder" x_test.go ;;
"test -c -fuzz . -o "*)
	cat >"$6" <<-'END'
		#!/bin/sh
		echo run >>runs
		n=$(wc -l <runs)
		cat $n
		[ -e $n.ok ]
	END
	chmod +x "$6" ;;
esac
`

// TestFuzzScriptRetries: scripts/fuzz runs a target again if Go's fuzzing fails at the end
// of its time, with that message alone, and once only. A failure of the target ends the run.
func TestFuzzScriptRetries(t *testing.T) {
	const (
		progress = "fuzz: elapsed: 0s, gathering baseline coverage: 0/3 completed\nfuzz: elapsed: 4s, execs: 9 (2/sec), new interesting: 0 (total: 3)\n"
		deadline = progress + "--- FAIL: FuzzX (4.06s)\n    context deadline exceeded\nFAIL\n"
		passes   = progress + "PASS\n"
		seed     = "--- FAIL: FuzzX (0.03s)\n    --- FAIL: FuzzX/seed#0 (0.00s)\n        x_test.go:9: context deadline exceeded\nFAIL\n"
		crasher  = progress + "--- FAIL: FuzzX (0.03s)\n    --- FAIL: FuzzX (0.00s)\n        x_test.go:9: wrong\n    \n    Failing input written to testdata/fuzz/FuzzX/1\nFAIL\n"
		hung     = "--- FAIL: FuzzX (4.06s)\n    context deadline exceeded\n    fuzzing process hung or terminated unexpectedly: exit status 2\nFAIL\n"
		other    = "--- FAIL: FuzzY (4.06s)\n    context deadline exceeded\nFAIL\n"
	)
	for name, c := range map[string]struct {
		outputs []string // the output of each run; only passes is one without a failure
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
		write("x_test.go", "package x\n\nfunc FuzzX(f *testing.F) {\n", 0o644)
		for i, out := range append(c.outputs, passes) {
			n := string(rune('1' + i))
			if write(n, out, 0o644); out == passes {
				write(n+".ok", "", 0o644)
			}
		}
		cmd := exec.Command("../../scripts/fuzz", "4s", "./x")
		cmd.Env = append(os.Environ(), "GLEAM_SAMPLE=", "GO="+filepath.Join(dir, "go"))
		out, err := cmd.CombinedOutput()
		runs, _ := os.ReadFile(filepath.Join(dir, "runs"))
		if n := strings.Count(string(runs), "run"); (err == nil) != c.ok || n != len(c.outputs) {
			t.Errorf("%s: %v after %d runs, want success %v after %d\n%s", name, err, n, c.ok, len(c.outputs), out)
		}
	}
}

// TestFuzzScriptTakesTurns: with GLEAM_SAMPLE a run has every third package that has targets, and three runs have each once.
func TestFuzzScriptTakesTurns(t *testing.T) {
	run := func(sample string) map[string]int {
		dir := t.TempDir()
		write := func(file, text string) {
			path := filepath.Join(dir, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
				t.Fatal(err)
			}
		}
		write("go", fakeGo)
		packages, names := "", []string{"a", "b", "none", "c", "d", "e"}
		for _, name := range names {
			packages += "example.org/" + name + " " + filepath.Join(dir, name) + " x_test.go\n"
			if name == "none" {
				write(name+"/x_test.go", "package none\n")
				continue
			}
			write(name+"/x_test.go", "package "+name+"\n\nfunc Fuzz_"+name+"(f *testing.F) {\n")
			write(name+"/1", "PASS\n")
			write(name+"/1.ok", "")
		}
		write("packages", packages)
		cmd := exec.Command("../../scripts/fuzz", "4s", "./...")
		cmd.Env = append(os.Environ(), "GLEAM_SAMPLE="+sample, "GO="+filepath.Join(dir, "go"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("sample %q: %v\n%s", sample, err, out)
		}
		ran := map[string]int{}
		for _, name := range names {
			runs, _ := os.ReadFile(filepath.Join(dir, name, "runs"))
			for range strings.Lines(string(runs)) {
				ran[name]++
			}
		}
		return ran
	}
	all, turns := run(""), map[string]int{}
	for _, sample := range []string{"1360", "1361", "1362"} {
		some := run(sample)
		if len(some) == 0 || len(some) > 2 {
			t.Errorf("sample %s: %v", sample, some)
		}
		for name, n := range some {
			turns[name] += n
		}
	}
	if len(all) != 5 || !maps.Equal(all, turns) {
		t.Errorf("all: %v; three turns: %v", all, turns)
	}
}
