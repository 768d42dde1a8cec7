// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestBlocks(t *testing.T) {
	const document = "# T\n## Other\n```\nnot this\n```\n## Run\ntext\n\n<!-- typed at: switch -->\n```sh\nmake\n\nls\n```\n<!-- prints -->\n```\nall\n```\n" +
		"text\n<!-- typed at: host 2, host 3; stays, says: waiting -->\n```sh\ngleam\n```\n<!-- any other -->\n## Next\n<!-- typed at: this machine; each for 2 s -->\n" +
		"```sh\na\n```\n<!-- typed at: this machine; at the end -->\n```sh\nb\n```\n<!-- run by: TestX -->\n```sh\nc\n```\n<!-- not run: it is late -->\n```sh\nd\n```\n"
	got, err := blocks(document)
	want := []block{
		{section: "Other", text: "not this\n", line: 3},
		{kind: typedHere, places: []string{"switch"}, text: "make\n\nls\n", language: "sh", section: "Run", line: 10},
		{kind: printed, text: "all\n", section: "Run", line: 16},
		{kind: typedHere, places: []string{"host 2", "host 3"}, says: "waiting", text: "gleam\n", language: "sh", section: "Run", line: 21},
		{kind: typedHere, places: []string{"this machine"}, each: 2 * time.Second, text: "a\n", language: "sh", section: "Next", line: 27},
		{kind: typedHere, places: []string{"this machine"}, atEnd: true, text: "b\n", language: "sh", section: "Next", line: 31},
		{kind: runBy, reason: "TestX", text: "c\n", language: "sh", section: "Next", line: 35},
		{kind: notRun, reason: "it is late", text: "d\n", language: "sh", section: "Next", line: 39},
	}
	if err := errors.Join(append(faults(got), err)...); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	for _, bad := range []struct{ text, want string }{
		{"```sh\nls\n```", "line 1: nothing says where these commands are typed"},
		{"```\nok\nmake demo\n```", "line 1: line 2 of the block is a command"},
		{"<!-- typed at: the moon -->\n```sh\nls\n```", `line 1: place "the moon"`},
		{"<!-- typed: switch -->\n```sh\nls\n```", "line 1: "},
		{"<!-- typed at: switch -->\nls\n", "line 2: a block was to follow"},
		{"<!-- typed at: switch -->\n```sh\nls\n", "a block does not end"},
		{"```go\nx := 1\n```", "line 1: a fragment of Go"},
		{"<!-- Go, as: func() {…} -->\n```sh\nls\n```", "line 2: a fragment of Go"},
		{"<!-- Go: func() {…} -->\n```go\nx := 1\n```", `line 1: "Go: func`},
		{"<!-- not run: so -->\n```\nls\n```\n", "line 2: commands are blocks of the language sh"},
		{"<!-- not run: so -->\n```sh\nls\n```\n<!-- prints -->\n```\nx\n```\n", "line 6: this is to be what a typed block before it prints"},
	} {
		bs, err := blocks(bad.text)
		if err := errors.Join(append(faults(bs), err)...); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%q: %v, want %q", bad.text, err, bad.want)
		}
	}
}

func TestCompare(t *testing.T) {
	const real = "PORT   STATE  RX\neth1   up     12\neth2   down   7\nt 2026-11-27T08:24:37+01:00 psn 0x20bdae in 1.25 s\n"
	for documented, want := range map[string]string{
		"PORT STATE RX\neth1 up 4711":                                      "",
		"eth1  up  1\n…\nt 2025-01-01T00:00:00+02:00 psn 0x000001 in 30ms": "",
		"eth… up 1":               "",
		"PORT STATE TX":           "line 1 of the documented output",
		"eth2 down 7\neth1 up 12": "line 2 of the documented output",
		"eth1 down 12":            "line 1",
	} {
		if err := compare(documented, real); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", documented, err, want)
		}
	}
}

// expect compares text with patterns.
func expect(t *testing.T, text string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(text) {
			t.Errorf("there is no %q in\n%s", p, text)
		}
	}
}
