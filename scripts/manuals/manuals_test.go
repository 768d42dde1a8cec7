// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/gleam-rdma/gleam/test/labtest"
)

const reference1 = "../../" + referenceFile

func pages(t *testing.T) map[string]string {
	t.Helper()
	all, err := all(stamp{"v1", "2026-01-01"}, reference1)
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string)
	for _, f := range all {
		texts[fmt.Sprintf("%s(%d)", f.name, f.section)] = f.text
	}
	return texts
}

// keysOf are the paths of all keys in a YAML value, as gleamd.yaml(5) has them.
func keysOf(v any, at string, found map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, below := range v {
			path := strings.TrimPrefix(at+"."+key, ".")
			found[path] = true
			keysOf(below, path, found)
		}
	case []any:
		for _, below := range v {
			keysOf(below, at+"[]", found)
		}
	}
}

// gleamd.yaml(5) has every key that a parser of YAML finds in the reference, and those that
// are there in comments.
func TestEachKeyIsExplained(t *testing.T) {
	text, err := os.ReadFile(reference1)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"state": true, "envelope.keys[].secret": true, "api.read_group": true}
	for _, key := range []string{"listen", "advertise", "certificate", "key", "ca"} {
		want["api."+key] = true
	}
	for _, key := range []string{"listen", "certificate", "key", "ca", "token_file"} {
		want["web."+key], want["metrics."+key] = true, true
	}
	keysOf(v, "", want)
	_, entries, err := reference(string(text))
	if err != nil {
		t.Fatal(err)
	}
	page := pages(t)["gleamd.yaml(5)"]
	for _, e := range entries {
		if !want[e.path] {
			t.Errorf("%s is no key", e.path)
		}
		delete(want, e.path)
		if !strings.Contains(page, e.term()) && !strings.Contains(page, ".SS "+escape(e.path)) {
			t.Errorf("gleamd.yaml(5) lacks %s", e.path)
		}
	}
	if len(want) > 0 {
		t.Errorf("not explained: %v", want)
	}
}

func TestReferenceRejectsWhatItDoesNotUnderstand(t *testing.T) {
	if _, _, err := reference("a: 1\nb = 2\n"); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v", err)
	}
}

// A page of gleam has each flag and each subcommand.
func TestPagesOfCommands(t *testing.T) {
	texts := pages(t)
	for name, want := range map[string][]string{
		"gleam(1)":               {"gleam\\-group", "gleam\\-perf", "\\-\\-socket", "EXIT STATUS", "gleamd.yaml"},
		"gleam-group-show(1)":    {"gleam group show", "\\-\\-output", "OPTIONS OF ALL COMMANDS"},
		"gleam-perf-send-lat(1)": {"SYNOPSIS", "\\-\\-listen"},
		"gleamd(8)":              {"\\-\\-check", "\\-\\-config", "/etc/gleam/gleamd.yaml"},
	} {
		for _, w := range want {
			if !strings.Contains(texts[name], w) {
				t.Errorf("%s lacks %q:\n%s", name, w, texts[name])
			}
		}
	}
	if _, ok := texts["gleam-help(1)"]; ok {
		t.Error("help has a page")
	}
}

// groff formats every page without a warning.
func TestPagesAreFormatted(t *testing.T) {
	labtest.Needs(t, "groff")
	dir := t.TempDir()
	for name, text := range pages(t) {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		c := exec.Command("groff", "-Kutf8", "-man", "-ww", "-Tutf8", file)
		c.Stderr = &said
		out, err := c.Output()
		if err != nil || said.Len() > 0 || len(out) < 200 {
			t.Errorf("%s: %v, %d bytes\n%s", name, err, len(out), said.String())
		}
	}
}

// What means something to roff is printed as it is.
func TestEscapes(t *testing.T) {
	p := new(page)
	p.text(".TH \\fBx\n'y -z \"w\" `v`\n\n    $ a -b\nend", false)
	want := ".PP\n\\&.TH \\efBx\n\\(aqy \\-z \\(dqw\\(dq \\(gav\\(ga\n.RS 4\n.EX\n$ a \\-b\n.EE\n.RE\n.PP\nend\n"
	if p.String() != want {
		t.Errorf("got\n%s\nwant\n%s", p, want)
	}
}

func TestCompletionsAreWritten(t *testing.T) {
	dir := t.TempDir()
	if err := completions(dir); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"bash-completion/completions/gleam", "zsh/vendor-completions/_gleam", "fish/vendor_completions.d/gleam.fish"} {
		if text, err := os.ReadFile(filepath.Join(dir, f)); err != nil || !strings.Contains(string(text), "gleam __complete") && !strings.Contains(string(text), "__complete") {
			t.Errorf("%s: %v", f, err)
		}
	}
}
