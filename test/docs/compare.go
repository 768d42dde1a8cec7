// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	// A value is what differs from run to run: numbers with their units, addresses,
	// times, hexadecimal digits.
	value  = regexp.MustCompile(`\b(?:[0-9]+h)?(?:[0-9]+m)?[0-9.]+(?:ns|us|µs|ms|s)\b|\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b|\b0x[0-9a-f]+…?|\b[0-9a-f]{16,}…?|[-+]?\b[0-9][0-9.:,/-]*(?:T[0-9:.]+)?(?:[+-][0-9]{2}:[0-9]{2})?(?:\s?(?:[kMG]?pps|[KMG]i?B(?:/s)?|[kMG]?bit/s|ns|us|µs|ms|s|min|h|k|M|G|%|x)\b)*`)
	spaces = regexp.MustCompile(`\s+`)
)

// shape is a line without its values and the width of its columns.
func shape(line string) string {
	return strings.TrimSpace(spaces.ReplaceAllString(value.ReplaceAllString(line, "#"), " "))
}

// compare returns the first line of a documented output that the real one does not have,
// in that order, but for values. A line of "…" alone stands for any lines, as does a gap:
// a document may leave lines out. Within a line "…" stands for any text.
func compare(documented, real string) error {
	var lines []string
	for _, l := range strings.Split(real, "\n") {
		lines = append(lines, shape(l))
	}
	for n, l := range strings.Split(strings.TrimRight(documented, "\n"), "\n") {
		want := shape(l)
		if want == "" || want == "…" {
			continue
		}
		var parts []string
		for _, p := range strings.Split(want, "…") {
			parts = append(parts, regexp.QuoteMeta(p))
		}
		pattern := regexp.MustCompile("^" + strings.Join(parts, ".*") + "$")
		found := false
		for i, real := range lines {
			if pattern.MatchString(real) {
				lines, found = lines[i+1:], true
				break
			}
		}
		if !found {
			return fmt.Errorf("line %d of the documented output is not in the real one after the lines before it: %s", n+1, l)
		}
	}
	return nil
}
