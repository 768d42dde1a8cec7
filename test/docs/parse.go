// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package docs types the commands of README.md, as a newcomer would, and checks their
// output. Commands are the fenced blocks of a section. A comment before each block names
// the places at which it is typed:
//
//	<!-- typed at: switch -->
//	<!-- typed at: host 2, host 3; stays, says: waiting for the sender -->
//
// A block that stays runs on in its own terminal; the next block begins when its output
// has the text after "says".
package docs

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// block is a list of commands, with the places at which they are typed.
type block struct {
	places   []string // "switch", "host 1" …
	says     string   // not empty: the last command stays, and is ready when it says this
	commands string
	line     int // of the file, from 1
}

var (
	typedAt = regexp.MustCompile(`^<!-- typed at: (.+?)(?:; stays, says: (.+?))? -->$`)
	place   = regexp.MustCompile(`^(switch|host [1-9])$`)
)

// blocks returns the fenced blocks of the section of a document, in order. A block
// without a comment is an error: no test would run it.
func blocks(document, section string) (bs []block, err error) {
	var errs []error
	inside, fenced := false, false
	marked := block{}
	for i, line := range strings.Split(document, "\n") {
		switch {
		case fenced && line == "```":
			fenced = false
			if marked.places != nil {
				bs = append(bs, marked)
			}
			marked = block{}
		case fenced:
			marked.commands += line + "\n"
		case strings.HasPrefix(line, "## "):
			inside = line == "## "+section
		case !inside:
		case strings.HasPrefix(line, "```"):
			fenced = true
			if marked.places == nil {
				errs = append(errs, fmt.Errorf("line %d: nothing says where this block is typed", i+1))
			}
			marked.line = i + 1
		case strings.HasPrefix(line, "<!--"):
			m := typedAt.FindStringSubmatch(line)
			if m == nil {
				errs = append(errs, fmt.Errorf("line %d: %q; want <!-- typed at: PLACE, PLACE; stays, says: TEXT -->", i+1, line))
				continue
			}
			marked = block{places: strings.Split(m[1], ", "), says: m[2]}
			for _, p := range marked.places {
				if !place.MatchString(p) {
					errs = append(errs, fmt.Errorf("line %d: place %q; want switch or host N", i+1, p))
				}
			}
		case line != "" && marked.places != nil:
			errs = append(errs, fmt.Errorf("line %d: a block was to follow the comment", i+1))
			marked = block{}
		}
	}
	if fenced {
		errs = append(errs, errors.New("a block does not end"))
	}
	if len(bs) == 0 {
		errs = append(errs, fmt.Errorf("no blocks in section %q", section))
	}
	return bs, errors.Join(errs...)
}
