// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// changed returns the changed keys of two configurations, each with "!" if it needs a
// restart.
func changed(a, b *Config) string {
	var keys []string
	for _, s := range a.Compare(b, a) {
		if s.Changed && s.Restart != "" {
			keys = append(keys, s.Key+"!")
		} else if s.Changed {
			keys = append(keys, s.Key)
		}
	}
	return strings.Join(keys, " ")
}

// Each key that differs is named, a port by its name wherever it stands in the list.
func TestCompare(t *testing.T) {
	text := minimalOf("{name: a, rate: 1mbit}, {name: b}, {name: c}")
	a := mustParse(t, text)
	if got := changed(a, mustParse(t, text)); got != "" {
		t.Errorf("the same file: %s", got)
	}
	b := mustParse(t, minimalOf("{name: c, vlan: 7}, {name: a, rate: 2mbit}, {name: d}")+"umem: {frames: 8192}\n")
	got := changed(a, b)
	for _, want := range []string{"ports[a].rate", "ports[b]", "ports[c].vlan", "ports[d]", "umem.frames!"} {
		if !strings.Contains(" "+got+" ", " "+want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	if n := len(strings.Fields(got)); n != 5 {
		t.Errorf("%d changes: %s", n, got)
	}
	start := mustParse(t, text+"limits: {groups: 500}\n")
	for groups, want := range map[int]string{400: "", 500: "", 600: sizedReason} {
		b := mustParse(t, fmt.Sprintf("%slimits: {groups: %d}\n", text, groups))
		low := mustParse(t, text+"limits: {groups: 300}\n")
		for _, s := range low.Compare(b, start) {
			if s.Key == "limits.groups" && (!s.Changed || s.Restart != want) {
				t.Errorf("%d groups: %+v", groups, s)
			}
		}
		b.KeepUntilRestart(low, start)
		if kept := b.Limits.Groups == 300; kept != (want != "") {
			t.Errorf("%d groups: in effect are %d", groups, b.Limits.Groups)
		}
	}
	b = mustParse(t, strings.ReplaceAll(text, goodHex, strings.ReplaceAll(goodHex, "0", "f")))
	if got := changed(a, b); got != "envelope.keys" {
		t.Errorf("another secret: %q", got)
	}
	for _, s := range a.Compare(b, a) {
		if strings.Contains(fmt.Sprint(s), goodHex) {
			t.Error("a comparison has a secret")
		}
	}
}

func minimalOf(ports string) string {
	return "ports: [" + ports + "]\ngroup_prefixes: [10.77.254.0/24]\nenvelope: {keys: [{id: 1, secret: \"hex:" + goodHex + "\"}]}\n"
}

func mustParse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A port's line is that of its name in the file as it is now.
func TestKeyLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("umem: {frames: 8192}\nports:\n  - name: a\n  - rate: none\n    name: b\ngroup_prefixes:\n- 10.1.0.0/16\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int{"ports[a]": 3, "ports[b]": 5, "ports[c]": 0, "group_prefixes": 7} {
		if got := KeyLine(path, key); got != want {
			t.Errorf("%s: line %d, want %d", key, got, want)
		}
	}
	if got := KeyLine(path+"x", "ports[a]"); got != 0 {
		t.Errorf("no file: line %d", got)
	}
}
