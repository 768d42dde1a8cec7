// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/labtest"
)

var fill = flag.Bool("fill", false, "fill blocks that are to be printed, and are empty, with what was printed")

// TestEveryCommandIsTyped fails for a block of commands that nothing runs and nothing
// explains, and for a test, target or case that a block names and that does not exist.
func TestEveryCommandIsTyped(t *testing.T) {
	count := map[kind]int{}
	for name, text := range documents(t) {
		if name == "CHANGELOG.md" {
			continue
		}
		bs, err := blocks(text)
		if err := errors.Join(append(faults(bs), err)...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, b := range bs {
			count[b.kind]++
			if b.kind == runBy {
				for _, err := range runners(b.reason) {
					t.Errorf("%s:%d: %v", name, b.line, err)
				}
			}
		}
	}
	t.Logf("%d blocks are typed here, %d compared with what is printed, %d run elsewhere, %d not run", count[typedHere], count[printed], count[runBy], count[notRun])
}

var runner = regexp.MustCompile(`^(?:(Test\w+)|make ([a-z0-9-]+)|rxe case "([^"]+)")(?:, |$)`)

// runners returns the faults of a list of what runs a block.
func runners(list string) (errs []error) {
	for list != "" {
		m := runner.FindStringSubmatch(list)
		if m == nil {
			return append(errs, fmt.Errorf("%q; want tests (TestX), make TARGET or rxe case \"NAME\", with commas", list))
		}
		list = list[len(m[0]):]
		pattern, text := "", ""
		switch {
		case m[1] != "":
			pattern, text = `(?m)^func `+m[1]+`\(t \*testing\.T\)`, sources("_test.go")
		case m[2] != "":
			pattern, text = `(?m)^`+m[2]+`:.*##`, sources("Makefile")
		default:
			pattern, text = regexp.QuoteMeta(m[3]), sources("test/rxe/cases/")
		}
		if !regexp.MustCompile(pattern).MatchString(text) {
			errs = append(errs, fmt.Errorf("%s: there is no such thing", strings.TrimSuffix(m[0], ", ")))
		}
	}
	return errs
}

// sources returns the text of the module's files whose path has a part.
func sources(part string) string {
	if text, ok := read[part]; ok {
		return text
	}
	var all strings.Builder
	_ = filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		name := e.Name()
		switch {
		case err != nil || e.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "bin" || name == "build"):
			return filepath.SkipDir
		case e.IsDir() || !strings.Contains(path, part):
			return nil
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	read[part] = all.String()
	return read[part]
}

// read has what sources has read.
var read = map[string]string{}

func TestRunners(t *testing.T) {
	for list, want := range map[string]int{
		`TestRunners, make demo`: 0, `rxe case "15 % of all packets lost"`: 0,
		`TestNobody`: 1, `make nothing, TestRunners`: 1, `rxe case "of another world"`: 1, `by hand`: 1,
	} {
		if errs := runners(list); len(errs) != want {
			t.Errorf("%s: %v, want %d errors", list, errs, want)
		}
	}
}

// continues is the comment of a document that goes on where another one has ended.
var continues = regexp.MustCompile(`(?m)^<!-- continues: (\S+\.md) -->$`)

// ofPart is the comment of a document that one part of the project types, since others do not install what it needs.
var ofPart = regexp.MustCompile(`(?m)^<!-- part: ([\w-]+) -->$`)

// TestDocuments types the commands of all documents but those of the section that
// TestRunItAsASwitch types, and those of a part. Each document has machines of its own: "this machine" has the programs
// installed and nothing else; a switch with hosts is as that section leaves it.
func TestDocuments(t *testing.T) {
	docs := documents(t)
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		var bs []block
		if m := continues.FindStringSubmatch(docs[name]); m != nil {
			before, err := blocks(docs[filepath.Join(filepath.Dir(name), m[1])])
			if err != nil {
				continue // TestEveryCommandIsTyped says it
			}
			for _, b := range before {
				if b.kind == typedHere && !b.atEnd {
					bs = append(bs, b)
				}
			}
		}
		own, err := blocks(docs[name])
		own = slices.DeleteFunc(own, func(b block) bool {
			return b.minutes && !labtest.InPart("docs") || b.section == asSwitch
		})
		if err != nil || ofPart.MatchString(docs[name]) || !slices.ContainsFunc(own, func(b block) bool { return b.kind == typedHere }) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.cloned = name == "docs/OPERATING.md"
			if slices.ContainsFunc(own, func(b block) bool { return slices.Contains(b.places, "switch") }) {
				m.serve()
			} else {
				m.install()
			}
			m.follow(name, bs)
			m.follow(name, own)
		})
	}
}

// TestDocumentsWithTorch types those of the part torch-docs, on a machine that has Debian's torch, and gleam_torch as its
// package has it.
func TestDocumentsWithTorch(t *testing.T) {
	labtest.Part(t, "torch-docs")
	labtest.Needs(t, "/usr/bin/python3", "/usr/lib/python3/dist-packages/torch")
	docs, typed := documents(t), 0
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		m := ofPart.FindStringSubmatch(docs[name])
		if m == nil {
			continue
		}
		if m[1] != "torch-docs" {
			t.Errorf("%s: no test types documents of the part %s", name, m[1])
			continue
		}
		typed++
		t.Run(name, func(t *testing.T) {
			own, err := blocks(docs[name])
			if err != nil {
				t.Fatal(err)
			}
			m := newMachine(t)
			m.install()
			m.run("switch", `to=$(/usr/bin/python3 -c 'import site; print(site.getsitepackages()[0])'); mkdir -p "$to"; cp -r host/libgleam/python/* "$to"`)
			m.follow(name, own)
		})
	}
	if typed == 0 {
		t.Error("no document is of the part torch-docs")
	}
}

// follow types blocks, and compares what is printed.
func (m *machine) follow(name string, bs []block) {
	m.t.Helper()
	var output func() string // the output of the last typed block
	for _, b := range bs {
		at := fmt.Sprintf("%s:%d", name, b.line)
		switch b.kind {
		case typedHere:
			output = m.typeBlock(at, b)
		case printed:
			m.compare(at, b, output)
		}
		if m.t.Failed() {
			return
		}
	}
}

// typeBlock types a block, and returns its output, which may go on.
func (m *machine) typeBlock(at string, b block) (output func() string) {
	m.t.Helper()
	m.t.Logf("%s: at %s:\n%s", at, strings.Join(b.places, ", "), b.text)
	said := ""
	m.limit = commandTimeout
	if b.minutes {
		m.limit *= 4
	}
	output = func() string { return said }
	for _, where := range b.places {
		switch {
		case b.says != "":
			output = m.stay(where, b.text, b.says).Output
		case b.each > 0:
			for _, line := range strings.Split(strings.TrimSpace(b.text), "\n") {
				said += m.run(where, fmt.Sprintf("timeout --signal=INT %d bash -euc %s", int(b.each.Seconds()), quote(line)), 0, 124)
			}
		default:
			said += m.run(where, b.text, b.exits)
		}
	}
	m.t.Logf("%s:\n%.3000s", at, output())
	return output
}

// quote quotes text for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// compare waits until the output is the documented one, but for values.
func (m *machine) compare(at string, b block, output func() string) {
	m.t.Helper()
	if *fill && strings.TrimSpace(b.text) == "" {
		m.fill(at, b, output())
		return
	}
	err := compare(b.text, output())
	for end := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(end); err = compare(b.text, output()) {
		<-time.After(50 * time.Millisecond)
	}
	if err != nil {
		m.t.Errorf("%s: %v\n%s", at, err, output())
	}
}

// fill writes what was printed into an empty block of its document.
func (m *machine) fill(at string, b block, printed string) {
	m.t.Helper()
	name, _, _ := strings.Cut(at, ":")
	file := filepath.Join(root, name)
	text, err := os.ReadFile(file)
	if err != nil {
		m.t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	lines = slices.Insert(lines, b.line+m.filled, strings.Split(strings.TrimRight(printed, "\n"), "\n")...)
	m.filled += strings.Count(strings.TrimRight(printed, "\n"), "\n") + 1
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		m.t.Fatal(err)
	}
}
