// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/test/mutation/module"
)

const calc = "test/mutation/generate/testdata/calc"

// Each operator makes mutants of a small package, a constant makes none. The tests
// notice all mutants but those of a function that they do not call, and a mutant that
// makes no difference: the slice to clear is empty. A mutant that never ends is noticed
// by its CPU time.
func TestSmallPackage(t *testing.T) {
	root, err := module.Root()
	if err != nil {
		t.Fatal(err)
	}
	p, err := build(root, []string{calc}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var all, survivors []string
	for r := range p.tryAll(p.sites, 2, 1) {
		if r.err != nil {
			t.Fatal(r.err)
		}
		line := fmt.Sprintf("%s %s: %s", r.fn, r.op, r.text)
		all = append(all, line)
		if !r.killed {
			survivors = append(survivors, line)
		}
	}
	want := []string{
		"Sum negate: x <= 0 || n == limit", "Sum operand of ||: x <= 0", "Sum operand of ||: n == limit", "Sum boundary: x <= 0",
		"Sum drop: continue", "Sum sign: sum += x", "Sum drop: sum += x", "Sum sign: n++", "Sum drop: n++",
		"Within negate: low <= x && x < high", "Within operand of &&: low <= x", "Within operand of &&: x < high",
		"Within boundary: low <= x", "Within boundary: x < high",
		"Clear negate: len(xs) == 0", "Clear drop: return", "Clear drop: xs[i] = x", "Clear drop: set()",
		"Untested sign: a + (b-a)/2", "Untested sign: b-a",
		"Halvings negate: n > 0", "Halvings boundary: n > 0", "Halvings drop: n /= 2", "Halvings sign: times++", "Halvings drop: times++",
	}
	slices.Sort(all)
	slices.Sort(want)
	if !slices.Equal(all, want) {
		t.Errorf("mutants:\n%s\nwant\n%s", strings.Join(all, "\n"), strings.Join(want, "\n"))
	}
	want = []string{"Clear drop: return", "Untested sign: a + (b-a)/2", "Untested sign: b-a"}
	slices.Sort(survivors)
	if !slices.Equal(survivors, want) {
		t.Errorf("survivors:\n%s\nwant\n%s", strings.Join(survivors, "\n"), strings.Join(want, "\n"))
	}
}

// A mutant that survives the tests of its package is tried with those of another one.
func TestOtherPackage(t *testing.T) {
	root, err := module.Root()
	if err != nil {
		t.Fatal(err)
	}
	p, err := build(root, []string{calc, calc + "/user"}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.sites {
		if s.fn != "Untested" && (s.fn != "Clear" || s.text != "return") {
			continue
		}
		if r := p.try(s, 1); r.err != nil || r.killed != (s.fn == "Untested") {
			t.Errorf("%s: killed %t, %v", s.key(), r.killed, r.err)
		}
	}
}

func TestAccepted(t *testing.T) {
	root, err := module.Root()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readAccepted(filepath.Join(root, acceptedFile)); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"key without reason\n":       `:1: want a key, a tab and a reason`,
		"# words\nkey\t \n":          `:2: want a key, a tab and a reason`,
		"key\tone\n\nkey\tanother\n": `:3: a second line for key`,
	} {
		path := filepath.Join(t.TempDir(), "accepted.txt")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readAccepted(path); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
