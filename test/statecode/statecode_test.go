// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestUpToDate: the committed files are what the tags say, and every field of a state has one.
func TestUpToDate(t *testing.T) {
	t.Chdir("../..")
	if err := run(true); err != nil {
		t.Error(err)
	}
}

// TestTags: a package of one struct, whose field F has some type and tag.
func TestTags(t *testing.T) {
	cases := []struct{ name, field, want string }{
		{"a number", "F uint16 `state:\"encoded\"`", "b = statecode.AppendUint(b, x.F)\n"},
		{"a flag by itself", "F []bool `state:\"encoded\"`", "b = append(b, statecode.Bit(x.F[i]))\n"},
		{"a flag", "F bool `state:\"encoded\"`", "x.F, x.on = v&1 != 0, v>>1&1 != 0\n"},
		{"a condition", "F uint8 `state:\"encoded if x.on else 7\"`", "if x.on {\n\t\tstatecode.ReadByte(&c.Code, &x.F)\n\t} else {\n\t\tx.F = 7\n\t}\n"},
		{"a value", "F int `state:\"encoded = c.f(x)\"`", "b = statecode.AppendInt(b, c.f(x))\n"},
		{"a list", "F []int `state:\"list\"`", "statecode.ReadList(&c.Code, &x.F)\n\tfor i := range x.F {\n"},
		{"elements", "F []inner `state:\"encoded\"`", "for i := range x.F {\n\t\tc.Index = i\n\t\tx.F[i].readState(c)\n"},
		{"a time", "F time.Duration `state:\"since(x.limit(1))\"`", "b = c.AppendSince(b, x.F, x.limit(1))\n"},
		{"a derived one", "F int `state:\"derived = 3\"`", "x.F = 3\n"},
		{"by hand", "F int `state:\"own(ring)\"`", "c.Bytes = b\n\tc.ring(x)\n\tb = c.Bytes\n"},
		{"a pointer", "F *inner `state:\"encoded\"`", "if x.F != nil {\n\t\tb = x.F.appendState(c, b)\n"},

		{"no tag", "F int", "machine.F has no tag"},
		{"another kind", "F int `state:\"encode\"`", "no form or kind that package statecode knows"},
		{"an argument too few", "F time.Duration `state:\"since\"`", "no form or kind that package statecode knows"},
		{"an argument too many", "F int `state:\"encoded(1)\"`", "no form or kind that package statecode knows"},
		{"another form", "F int `state:\"Encoded\"`", "no form or kind that package statecode knows"},
		{"some kind of time", "F time.Duration `state:\"encoded\"`", "x.F: no time is just encoded"},
		{"no time", "F int `state:\"ahead\"`", "x.F: no time is just encoded, and nothing else is a time"},
		{"no encoding", "F string `state:\"encoded\"`", "x.F has type string, which has no encoding"},
		{"a part without tags", "F bare `state:\"encoded\"`", "x.F has type m/p"},
	}
	fields := make([]string, len(cases))
	for i, c := range cases {
		fields[i] = c.field
	}
	loaded := load(t, fields)
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text, err := generate(loaded[i].Types)
			got := string(text)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// load makes a package of each field, in one module.
func load(t *testing.T, fields []string) []*packages.Package {
	t.Helper()
	dir := t.TempDir()
	write := func(text string, path ...string) {
		name := filepath.Join(append([]string{dir}, path...)...)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("module m\n\ngo 1.24\n", "go.mod")
	for i, field := range fields {
		write(`package m

import "time"

type machine struct {
	`+field+`
	on bool `+"`state:\"encoded\"`"+`
}

type inner struct {
	g []int `+"`state:\"list\"`"+`
}

type bare struct{ g int }

var _ time.Duration
`, fmt.Sprintf("p%02d", i), "m.go")
	}
	loaded, err := packages.Load(&packages.Config{Mode: mode, Dir: dir, Env: append(os.Environ(), "GOWORK=off")}, "./...")
	if err != nil || len(loaded) != len(fields) {
		t.Fatalf("%d packages are loaded, %v", len(loaded), err)
	}
	return loaded
}
