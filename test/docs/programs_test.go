// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// command is the beginning of a command in a shell, with the program of that command; shellComment is what no shell
// reads, and hereDocument what another program does.
var (
	command      = regexp.MustCompile(`(?m)(?:^|[|&;(]|\bdo\b|\bthen\b)[ \t]*(?:(?:sudo|nohup|xargs|timeout \S+|ip netns exec \S+)[ \t]+)*([a-z][\w.+-]*)(?:[ \t]|$)`)
	shellComment = regexp.MustCompile(`(?m)(?:^|\s)#.*$`)
	hereDocument = regexp.MustCompile(`(?ms)( <<'?END'?)$.*?^END$`)
)

// ofDebian are programs of packages that each Debian has, of the shell itself, of this project, and those that
// README says a machine needs.
var ofDebian = strings.Fields(`sudo cat head tail grep sed awk sort tr wc tee cut cmp sha256sum ls cp mv rm mkdir chmod chown install dd stat seq sleep date
	true false until kill wait echo printf cd export for do done while if then else fi trap read set test exec umask
	apt apt-get dpkg git make go sysctl timeout nohup mktemp touch ln xargs diff id`)

// TestTypedProgramsAreInstalled: each program that the tests type by a document is in scripts/packages for the part
// docs, and for the part all if that part types it, or for the one part that types the document. A machine on which it was installed by hand does not show that.
func TestTypedProgramsAreInstalled(t *testing.T) {
	table, err := os.ReadFile("../../scripts/packages")
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string][]string{}
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 2 && f[0] != "#" {
			parts[f[0][strings.LastIndex(f[0], "/")+1:]] = f[2:]
		}
	}
	seen := 0
	for name, text := range documents(t) {
		bs, err := blocks(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bs {
			if b.kind != typedHere {
				continue
			}
			read := shellComment.ReplaceAllString(hereDocument.ReplaceAllString(b.text, "$1"), "")
			for _, m := range command.FindAllStringSubmatch(read, -1) {
				program := m[1]
				if slices.Contains(ofDebian, program) || strings.HasPrefix(program, "gleam") {
					continue
				}
				seen++
				of := []string{"docs"}
				if m := ofPart.FindStringSubmatch(text); m != nil {
					of = m[1:]
				} else if !b.minutes {
					of = append(of, "all")
				}
				if slices.ContainsFunc(of, func(part string) bool { return !slices.Contains(parts[program], part) }) {
					t.Errorf("%s:%d: the tests type %s, which scripts/packages does not have for their parts", name, b.line, program)
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("%d programs in all: are the blocks read rightly?", seen)
	}
}
