// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Error is one error of a configuration file.
type Error struct {
	File   string
	Line   int    // the line, from 1; 0: the error is about the whole file
	Key    string // the key, such as "ports[1].name"; "": the error is about the whole file
	Text   string // the offending text; "" if it is a secret or missing
	Reason string
}

// Error returns FILE:LINE: KEY: "TEXT": REASON, without the parts that are empty.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	if e.Key != "" {
		b.WriteString(": " + e.Key)
	}
	if e.Text != "" {
		b.WriteString(": " + strconv.Quote(truncateText(e.Text)))
	}
	b.WriteString(": " + e.Reason)
	return b.String()
}

// Errors are all errors of a file, by line.
type Errors []*Error

// Error returns one line per error.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the single errors.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, one := range e {
		errs[i] = one
	}
	return errs
}

// truncateText bounds the length of a message.
func truncateText(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
