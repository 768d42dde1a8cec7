// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "",
		"weights-é-漢.bin":          "weights-é-漢.bin",
		"\x1b]0;evil\a\x1b[2J":     `\u001b]0;evil\u0007\u001b[2J`,
		"C1 \u009b2J":              `C1 \u009b2J`,
		"C1 as a byte \x9b2J":      `C1 as a byte \x9b2J`,
		"two\nlines\tand\rback":    `two\nlines\tand\u000dback`,
		"gnp.\u202efdp":            `gnp.\u202efdp`,
		"a tag \U000e0041":         `a tag \udb40\udc41`,
		"a replacement \ufffd too": "a replacement \ufffd too",
	} {
		if got := Clean(in); got != want {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
}

// Whatever is written, in pieces of any length, controls nothing, nothing printable is lost,
// and JSON has the same values.
func TestWriter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		if rapid.Bool().Draw(t, "bytes") {
			text = string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + "\n"
		}
		var js bytes.Buffer
		_ = json.NewEncoder(&js).Encode(text)
		for _, in := range []string{text + "\n", js.String()} {
			var out bytes.Buffer
			w := NewWriter(&out)
			for rest := []byte(in); len(rest) > 0; {
				n := rapid.IntRange(1, len(rest)).Draw(t, "n")
				if m, err := w.Write(rest[:n]); m != n || err != nil {
					t.Fatal(m, err)
				}
				rest = rest[n:]
			}
			if strings.ContainsFunc(out.String(), func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }) || !utf8.Valid(out.Bytes()) {
				t.Fatalf("%q is written as %q", in, out.String())
			}
			lines := strings.Split(in, "\n")
			for i := range lines {
				cells := strings.Split(lines[i], "\t")
				for j := range cells {
					cells[j] = Clean(cells[j])
				}
				lines[i] = strings.Join(cells, "\t")
			}
			if want := strings.Join(lines, "\n"); out.String() != want {
				t.Fatalf("%q is written as %q, want %q", in, out.String(), want)
			}
			if in == js.String() {
				var got, want string
				if err := json.Unmarshal(js.Bytes(), &want); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(out.Bytes(), &got); err != nil || got != want {
					t.Fatalf("%q is %q, %v", want, got, err)
				}
			}
		}
	})
}

var _ = []mutant.Mutant{
	mutant.New("only control characters of ASCII are cleaned", "terminal", mutant.In(Clean,
		"if !unicode.IsPrint(r) || r == utf8.RuneError {",
		"if r < ' ' {")),
	mutant.New("a rune in two pieces is two", "terminal", mutant.In(incomplete,
		"return n\n\t\t\t}",
		"return 0\n\t\t\t}")),
}
