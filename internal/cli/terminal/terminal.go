// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package terminal keeps text of others (names of files, what a host or a switch says) from
// controlling the terminal that it is shown at.
package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"
)

// Clean makes s one line that controls no terminal: what is not printable is written as JSON
// and Go write it in strings ("\n", "\u001b"), a byte that is no UTF-8 as "\xff".
func Clean(s string) string {
	for i, r := range s {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			b := append(make([]byte, 0, len(s)+16), s[:i]...)
			for len(s) > i {
				r, n := utf8.DecodeRuneInString(s[i:])
				b = appendRune(b, r, s[i:i+n])
				i += n
			}
			return string(b)
		}
	}
	return s
}

// appendRune appends r, of which text is the encoding.
func appendRune(b []byte, r rune, text string) []byte {
	switch {
	case r == utf8.RuneError && len(text) == 1:
		return fmt.Appendf(b, `\x%02x`, text[0])
	case unicode.IsPrint(r):
		return append(b, text...)
	case r == '\n':
		return append(b, `\n`...)
	case r == '\t':
		return append(b, `\t`...)
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		return fmt.Appendf(b, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(b, `\u%04x`, r)
}

// Writer cleans all that is written to it but the ends of lines and tabs. JSON stays JSON, of
// the same values. Any goroutine may write.
type Writer struct {
	w    io.Writer
	mu   sync.Mutex
	held []byte // the beginning of a rune
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in := p
	if len(w.held) > 0 {
		in = append(w.held, p...)
	}
	w.held = nil
	if rest := incomplete(in); rest > 0 {
		in, w.held = in[:len(in)-rest], append([]byte(nil), in[len(in)-rest:]...)
	}
	var out strings.Builder
	for s := string(in); len(s) > 0; {
		n := strings.IndexAny(s, "\n\t")
		if n < 0 {
			out.WriteString(Clean(s))
			break
		}
		out.WriteString(Clean(s[:n]))
		out.WriteByte(s[n])
		s = s[n+1:]
	}
	if _, err := io.WriteString(w.w, out.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// incomplete returns the number of bytes at the end of b that are the beginning of a rune.
func incomplete(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// Raw returns what w writes to, for bytes that are no text, and for text that is Clean and
// drawn.
func Raw(w io.Writer) io.Writer {
	if c, ok := w.(*Writer); ok {
		return c.w
	}
	return w
}

// Of returns the terminal that w writes to; ok is false if it is none.
func Of(w io.Writer) (f *os.File, ok bool) {
	if f, ok = Raw(w).(*os.File); ok {
		ok = term.IsTerminal(int(f.Fd()))
	}
	return f, ok
}

// Drawable returns the terminal that w writes to, to draw on; nil, and why not, if it is none, or
// one without escape sequences: a serial console, a shell in an editor, a build's log.
func Drawable(w io.Writer) (f *os.File, whyNot string) {
	f, ok := Of(w)
	if !ok {
		return nil, "standard output is no terminal"
	}
	switch kind := os.Getenv("TERM"); kind {
	case "":
		return nil, "TERM is not set, so that the terminal is taken for one without escape sequences"
	case "dumb", "emacs", "network", "unknown": // of which terminfo says that they have none
		return nil, fmt.Sprintf("the terminal has no escape sequences (TERM=%s)", kind)
	}
	return f, ""
}
