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

// fakeGotestsum writes the events of a run, and passes.
const fakeGotestsum = `#!/bin/sh
while [ "$1" != --jsonfile ]; do shift; done
cp "$(dirname "$0")/events" "$2"
`

// TestGotestTellsFailures: the file GLEAM_FAILURES gets each test that failed at last, with the
// first and last lines of its last run as it printed them.
func TestGotestTellsFailures(t *testing.T) {
	const of = `"Package":"github.com/gleam-rdma/gleam/api","Test":"`
	line := func(test, text string) string {
		return `{"Action":"output",` + of + test + `","Output":"` + text + `\n"}` + "\n"
	}
	end := func(test, action string) string {
		return `{"Action":"` + action + `",` + of + test + `","Elapsed":0}` + "\n"
	}
	dir := t.TempDir()
	for file, text := range map[string]string{
		"go": fakeGotestsum,
		"events": line("TestA/b", "=== RUN   TestA/b") + line("TestA/b", "    in the first run") + line("TestA/b", "=== RUN   TestA/b") + line("TestA/b", `    a_test.go:1: \tgot \"1\", want \u003c2\u003e`) + line("TestC", "    c_test.go:1: only at first") +
			line("TestD", "    d_test.go:1: the cause") + strings.Repeat(line("TestD", "    d_test.go:2: a note"), 20) + line("TestD", "--- FAIL: TestD") + end("TestD", "fail") +
			line("TestA", "--- FAIL: TestA") + end("TestA/b", "fail") + end("TestA", "fail") + end("TestC", "fail") + end("TestC", "pass"),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("../../scripts/gotest", "--", "./...")
	cmd.Env = append(os.Environ(), "GO="+dir+"/go", "GLEAM_FAILURES="+dir+"/failures", "GLEAM_COUNTS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const note = "    d_test.go:2: a note\n"
	want := "github.com/gleam-rdma/gleam/api TestA:\n--- FAIL: TestA\n" +
		"github.com/gleam-rdma/gleam/api TestA/b:\n    in the last of 2 runs:\n    a_test.go:1:   got \"1\", want <2>\n" +
		"github.com/gleam-rdma/gleam/api TestD:\n    d_test.go:1: the cause\n" + strings.Repeat(note, 5) + "    ...\n" + strings.Repeat(note, 5) + "--- FAIL: TestD\n"
	if got, err := os.ReadFile(dir + "/failures"); err != nil || string(got) != want {
		t.Errorf("%v: failures are\n%s\nwant\n%s", err, got, want)
	}
}

// TestGotestFailsForSkips: where nothing may be skipped, scripts/gotest fails for a skip
// without a reason in scripts/skips, and counts what passed, failed and was skipped at last.
func TestGotestFailsForSkips(t *testing.T) {
	const module = "github.com/gleam-rdma/gleam/"
	event := func(action, pkg, test string) string {
		return `{"Time":"2026-01-01T00:00:00Z","Action":"` + action + `","Package":"` + module + pkg + `","Test":"` + test + `","Elapsed":0}` + "\n"
	}
	const whole = `{"Time":"2026-01-01T00:00:00Z","Action":"skip","Package":"` + module + `api","Elapsed":0}` + "\n" // a package without tests
	disturbed := `{"Time":"2026-01-01T00:00:00Z","Action":"output","Package":"` + module + `test/e2e","Test":"TestA","Output":"    a_test.go:1: 2 s, want 1 s; but other programs used 0.94 CPUs meanwhile\n"}` + "\n"
	said := func(text string) string {
		return `{"Time":"2026-01-01T00:00:00Z","Action":"output","Package":"` + module + `lab/block/rig","Test":"TestA","Output":"    a_test.go:1: ` + text + `\n"}` + "\n"
	}
	for name, c := range map[string]struct {
		events string
		strict bool
		ok     bool
		counts string
	}{
		"passes":                      {event("pass", "api", "TestA") + whole, true, true, "1 0 0"},
		"a skip":                      {event("skip", "api", "TestA"), true, false, "0 0 1"},
		"a skip where it may":         {event("skip", "api", "TestA"), false, true, "0 0 1"},
		"a skip with a reason":        {event("skip", "bpf", "TestSteerFirstBufferOnly"), true, true, "0 0 1"},
		"a subtest of it":             {event("skip", "bpf", "TestSteerFirstBufferOnly/x/y") + event("pass", "bpf", "TestSteerFirstBufferOnly"), true, true, "1 0 1"},
		"the same name elsewhere":     {event("skip", "api", "TestSteerFirstBufferOnly"), true, false, "0 0 1"},
		"of another part":             {said("scripts/test block or soak-block runs it") + event("skip", "lab/block/rig", "TestA"), true, true, "0 0 1"},
		"of no part":                  {said("nobody runs it") + event("skip", "lab/block/rig", "TestA"), true, false, "0 0 1"},
		"a subtest":                   {event("skip", "api", "TestA/b") + event("pass", "api", "TestA"), true, false, "1 0 1"},
		"failed, then passed":         {event("fail", "api", "TestA") + event("pass", "api", "TestA"), true, true, "1 0 0"},
		"failed, then skipped":        {event("fail", "api", "TestA") + event("skip", "api", "TestA"), true, false, "0 0 1"},
		"other programs had the CPUs": {disturbed + event("skip", "test/e2e", "TestA"), true, true, "0 0 1"},
		"of another test":             {disturbed + event("skip", "test/e2e", "TestAB"), true, false, "0 0 1"},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{"go": fakeGotestsum, "events": c.events} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("../../scripts/gotest", "--", "./...")
		cmd.Env = append(os.Environ(), "GO="+dir+"/go", "GLEAM_COUNTS="+dir+"/counts", "GLEAM_FAILURES=", "GLEAM_REQUIRE_ROOT="+map[bool]string{true: "1"}[c.strict])
		out, err := cmd.CombinedOutput()
		counts, _ := os.ReadFile(dir + "/counts")
		if (err == nil) != c.ok || strings.TrimSpace(string(counts)) != c.counts {
			t.Errorf("%s: %v, counts %s; want success %v, %s\n%s", name, err, counts, c.ok, c.counts, out)
		}
	}
}
