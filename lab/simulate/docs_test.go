// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedCommands runs the commands of docs/SIMULATION.md, one after another in a new folder. What a
// batch system puts into a command is one of its values.
func TestDocumentedCommands(t *testing.T) {
	docs, err := filepath.Abs("../../docs")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(docs, "SIMULATION.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(docs, filepath.Join(dir, "docs")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	found := map[string]int{}
	for _, line := range regexp.MustCompile(`(?m)^(?:gleam|sbatch|parallel) .*$`).FindAllString(string(text), -1) {
		line, _, _ = strings.Cut(line, " #")
		_, args, ok := strings.Cut(line, "gleam sim ")
		args, _, _ = strings.Cut(args, ":::")
		args = strings.NewReplacer("'", "", "$SLURM_ARRAY_TASK_ID", "0", "{}", "0").Replace(args)
		words := strings.Fields(args)
		if !ok || len(words) == 0 || words[0] == "bench" {
			continue
		}
		found[words[0]]++
		switch { // what takes long is shortened
		case strings.Contains(args, "panel.yaml"):
			words = append(words, "--print-config")
		case strings.Contains(args, "storage.yaml"):
			words = append(words, "--set", "clients=16")
		case words[0] == "run" && !strings.Contains(args, "--set"):
			words = append(words, "--set", "at=1s")
		}
		if out, errs, code := command(t.Context(), t, words...); code != 0 {
			t.Errorf("%s: exit code %d: %s%s", line, code, out, errs)
		}
	}
	for kind, least := range map[string]int{"run": 5, "sweep": 3, "merge": 1, "report": 1, "topology": 3} {
		if found[kind] < least {
			t.Errorf("%d commands %s; want %d or more", found[kind], kind, least)
		}
	}
	for _, name := range []string{"flows.csv", "tree.svg", "jct.svg", "h1.pcapng", "ports.csv"} {
		if st, err := os.Stat(name); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
