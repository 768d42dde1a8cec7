// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func TestBlocks(t *testing.T) {
	const document = "# T\n## Other\n```\nnot this\n```\n## Run\ntext\n\n<!-- typed at: switch -->\n```\nmake\n\nls\n```\n" +
		"text\n<!-- typed at: host 2, host 3; stays, says: waiting -->\n```sh\ngleam\n```\n## Next\n```\nnor this\n```\n"
	got, err := blocks(document, "Run")
	want := []block{
		{places: []string{"switch"}, commands: "make\n\nls\n", line: 10},
		{places: []string{"host 2", "host 3"}, says: "waiting", commands: "gleam\n", line: 17},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	for _, bad := range []struct{ section, want string }{
		{"```\nls\n```", "line 2: nothing says where this block is typed"},
		{"<!-- typed at: the moon -->\n```\nls\n```", `line 2: place "the moon"`},
		{"<!-- typed: switch -->\n```\nls\n```", "line 2: "},
		{"<!-- typed at: switch -->\nls\n", "line 3: a block was to follow"},
		{"<!-- typed at: switch -->\n```\nls\n", "a block does not end"},
		{"text", "no blocks"},
	} {
		if _, err := blocks("## Run\n"+bad.section, "Run"); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%q: %v, want %q", bad.section, err, bad.want)
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
