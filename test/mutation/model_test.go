// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/test/labtest"
	"github.com/gleam-rdma/gleam/test/model"
)

// undone is a mend that is undone, by one mutant or several, and the scenario of the model that finds the false
// completion then.
type undone struct {
	mutant
	scenario string
	full     bool // the scenario is one of make model, not of its quick form
}

// TestFalseCompletionsAreFound undoes the mends in the table of docs/MODEL.md, one at a time, and has the model find the
// false completion by what hosts see alone. All of them are undone in make model, and in its quick form those in turn.
// Else the test holds the table to the mutants and the scenarios that there are.
func TestFalseCompletionsAreFound(t *testing.T) {
	root := rootOf(t)
	s := &sources{root: root}
	for i, u := range undoneMends(t, root) {
		form := os.Getenv("GLEAM_MODEL")
		if form == "" || form == "quick" && (u.full || !labtest.InTurn(t, i, 6)) {
			continue
		}
		t.Run(u.name, func(t *testing.T) {
			files, err := u.changed(s)
			if err != nil {
				t.Fatal(err)
			}
			overlay, err := writeOverlay(t.TempDir(), root, files)
			if err != nil {
				t.Fatal(err)
			}
			if form = "quick"; u.full {
				form = "full"
			}
			cmd := exec.Command("go", "test", "-vet=off", "-ldflags=-w", "-count=1", "-timeout=20m", "-overlay="+overlay, "-run=^TestModel$", "-v", "./test/model")
			cmd.Dir = root
			cmd.Env = append(os.Environ(), "GLEAM_MODEL="+form, "GLEAM_MODEL_ONLY="+u.scenario, "GLEAM_MODEL_HOSTS=1", "GLEAM_SAMPLE=")
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "FALSE COMPLETION") {
				t.Fatalf("%s does not find it: %v\n%s", u.scenario, err, out)
			}
			for _, line := range regexp.MustCompile(`[0-9]+ states .*|.*FALSE COMPLETION.*`).FindAll(out, -1) {
				t.Logf("%s: %s", u.scenario, line)
			}
		})
	}
}

var undoneRow = regexp.MustCompile("(?m)^\\|[^|]*\\| ((?:“[^”]*”(?:, )?)+) \\| `([a-z0-9-]+)`(, full)? \\|")

// undoneMends reads the table.
func undoneMends(t *testing.T, root string) (list []undone) {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join(root, "docs", "MODEL.md"))
	if err != nil {
		t.Fatal(err)
	}
	declared := allOf(t)
	for _, row := range undoneRow.FindAllStringSubmatch(string(doc), -1) {
		u := undone{scenario: row[2], full: row[3] != ""}
		for _, name := range regexp.MustCompile("“([^”]*)”").FindAllStringSubmatch(row[1], -1) {
			k := slices.IndexFunc(declared, func(m mutant) bool { return m.name == name[1] })
			if k < 0 {
				t.Fatalf("docs/MODEL.md: no mutant is named %q", name[1])
			}
			u.name, u.dir, u.changes = row[1], declared[k].dir, append(u.changes, declared[k].changes...)
		}
		configs := slices.Concat(model.Tiny(), model.Quick())
		if u.full {
			configs = model.Full()
		}
		if !slices.ContainsFunc(configs, func(c model.Config) bool { return c.Name == u.scenario }) {
			t.Errorf("docs/MODEL.md: there is no scenario %q", fmt.Sprint(u.scenario, row[3]))
		}
		list = append(list, u)
	}
	if len(list) == 0 {
		t.Fatal("docs/MODEL.md has no table of mends")
	}
	return list
}
