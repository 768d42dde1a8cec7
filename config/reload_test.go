// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
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

// Every key is decided, no entry is of a key that does not exist, and reference.yaml says
// the same: "Reload: applied." or "Restart: REASON." in the comment of the entry's key.
func TestReloadsAreInTheReference(t *testing.T) {
	keys := make(map[string]bool)
	structKeys(reflect.TypeFor[Config](), "", keys)
	lines := strings.Split(string(mustRead(t, "reference.yaml")), "\n")
	for key := range keys {
		if strings.Contains(RestartReason(key), "no reload") && !sectionOnly(key) {
			t.Errorf("%s: no entry of reloads says whether a reload applies it", key)
		}
	}
	for _, r := range reloads {
		if !keys[r.key] && !keys[strings.Replace(r.key, "ports.", "ports[].", 1)] {
			t.Errorf("reloads has %s, which is no key", r.key)
		}
		want := "Reload: applied."
		if r.restart != "" {
			want = "Restart: " + r.restart + "."
		}
		if got := commentOf(lines, r.key); !strings.Contains(got, want) {
			t.Errorf("reference.yaml does not say %q at %s, but: %s", want, r.key, got)
		}
	}
}

// sectionOnly reports whether all keys below a section have entries of their own.
func sectionOnly(key string) bool {
	for _, r := range reloads {
		if strings.HasPrefix(r.key, key+".") {
			return true
		}
	}
	return false
}

// commentOf returns the comment above a key of reference.yaml, and the one behind it, as
// one line.
func commentOf(lines []string, key string) string {
	section, last, indent := "", key, ""
	if i := strings.IndexByte(key, '.'); i >= 0 {
		section, last, indent = key[:i], key[i+1:], "  "
		if section == "ports" {
			indent = "    "
		}
	}
	in, at := section == "", -1
	for i, l := range lines {
		if strings.HasPrefix(l, section+":") && section != "" {
			in = true
			continue
		}
		if in && regexp.MustCompile(`^`+indent+`(# )?`+regexp.QuoteMeta(last)+`:`).MatchString(l) {
			at = i
			break
		}
	}
	if at < 0 {
		return "(the key was not found)"
	}
	var words []string
	first := at
	for first > 0 && strings.HasPrefix(strings.TrimSpace(lines[first-1]), "#") {
		first--
	}
	for _, l := range lines[first:at] {
		words = append(words, strings.Fields(strings.TrimLeft(strings.TrimSpace(l), "#"))...)
	}
	if _, behind, ok := strings.Cut(lines[at], "#"); ok {
		words = append(words, strings.Fields(behind)...)
	}
	return strings.Join(words, " ")
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
