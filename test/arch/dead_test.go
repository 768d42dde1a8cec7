// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/token"
	"strings"
	"testing"
)

// Every exported function, method, constant and variable has a use in the program, or in
// tests if it is of a package for tests. Names are compared, not types: a name that
// stands anywhere counts as used.
func TestExportsAreUsed(t *testing.T) {
	program, tests := newUses(), newUses()
	for name, src := range goFiles(t) {
		inTests := strings.HasSuffix(name, "_test.go")
		ofTests := strings.HasPrefix(name, "test/") || strings.HasPrefix(name, "lab/") || strings.HasPrefix(name, "test/model/") || strings.Contains(name, "test/")
		for u, declares := range map[*uses]bool{program: !inTests && !ofTests, tests: !inTests && ofTests} {
			if u == program && inTests {
				continue
			}
			if err := u.add(name, src, declares); err != nil {
				t.Error(err)
			}
		}
	}
	for _, u := range []*uses{program, tests} {
		for full, at := range u.declared {
			if n := full[strings.LastIndexByte(full, '.')+1:]; u.count[n] == 0 && mayBeUnused[full] == "" && mayBeUnused[full[:strings.IndexByte(full, '.')]] == "" {
				t.Errorf("%s: %s is used nowhere: delete it, or write the reason for it into mayBeUnused", at, full)
			}
		}
	}
}

func newUses() *uses { return &uses{map[string]token.Position{}, map[string]int{}} }

func TestUnusedExportsAreFound(t *testing.T) {
	u := newUses()
	src := "package p\nconst Used, Unused = 1, 2\ntype T int\nfunc (T) Called() {}\nfunc (T) Dead() {}\nfunc (t T) own() { t.Called(); _ = Used }\n"
	if err := u.add("a/p.go", []byte(src), true); err != nil {
		t.Fatal(err)
	}
	for name, unused := range map[string]bool{"a.Used": false, "a.Unused": true, "a.T.Called": false, "a.T.Dead": true} {
		if _, ok := u.declared[name]; !ok || unused != (u.count[name[strings.LastIndexByte(name, '.')+1:]] == 0) {
			t.Errorf("%s: declared %v, unused %v", name, ok, !unused)
		}
	}
	if len(u.declared) != 4 {
		t.Errorf("declared are %v", u.declared)
	}
}
