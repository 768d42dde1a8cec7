// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package docs types the commands of the documents, as a reader would, and checks their
// output. Commands are fenced blocks of the language sh. A comment before each says what
// becomes of it:
//
//	<!-- typed at: switch -->
//	<!-- typed at: host 2, host 3; stays, says: waiting for the sender -->
//	<!-- typed at: switch; each for 2 s -->
//	<!-- typed at: this machine; at the end -->
//	<!-- typed at: switch; exits 1 -->
//	<!-- typed at: this machine; takes minutes -->
//	<!-- run by: TestKillMember, make demo, rxe case "MPI_Bcast" -->
//	<!-- not run: it needs an RNIC -->
//
// A block that stays runs on in a terminal of its own; the next block begins when its
// output has the text after "says". Each line of one "each for 2 s" is ended by Ctrl-C
// after that time. One "at the end" removes what the document has made; make test-docs alone types
// one that takes minutes. A test, a target
// of make or a case of test/rxe that runs a block has to exist. A block that another one
// of these prints has a comment, too:
//
//	<!-- prints -->
//
// It is compared with the output of the block that was typed before it.
//
// A document that needs what one part of the project alone installs says which, and that part types it:
//
//	<!-- part: torch-docs -->
//
// Blocks of the language go are whole files, or a comment says what is around them, with … in
// their place, and the package whose names they use, if it is not a program's. Fragments need no
// imports (importable in gocode_test.go); a function without a body has to exist as it is declared:
//
//	<!-- Go, as: func(ctx context.Context, key []byte) error {…; return nil } -->
//	<!-- Go in mcast -->
//	<!-- Go in mcast, as: []mutant.Mutant{…} -->
package docs

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// kind is what becomes of a block.
type kind int

const (
	unmarked  kind = iota
	typedHere      // the test types it
	printed        // the output of the typed block before it
	shown          // another test makes it, and compares it
	runBy          // something else runs it
	notRun         // nothing runs it, for a reason
	goCode         // a fragment of Go
)

// block is a fenced block, with what the comment before it says.
type block struct {
	kind     kind
	places   []string // "switch", "host 1" …, of a typed block
	says     string   // the words by which the last command is ready, and stays; empty: it ends
	each     time.Duration
	atEnd    bool
	exits    int    // the exit code of the last command
	minutes  bool   // typed in the part docs alone
	reason   string // what runs it, or why nothing does
	in, as   string // a fragment of Go: its package, and what is around it
	section  string // the heading of second level above it
	language string
	text     string
	line     int // the line of the file, from 1
}

var (
	typedAt = regexp.MustCompile(`^typed at: ([^;]+?)(?:; (?:stays, says: (.+?)|each for ([0-9]+) s|(at the end)|exits ([0-9]+)|(takes minutes)))?$`)
	other   = regexp.MustCompile(`^(run by|not run): (.+)$`)
	goMark  = regexp.MustCompile(`^Go(?: in ([\w/]+))?(?:, as: ([^…]+…[^…]+))?$`)
	place   = regexp.MustCompile(`^(this machine|switch|host [1-9])$`)
)

// mark reads the text of a comment; false if it is not about a block.
func mark(text string) (b block, ok bool, err error) {
	switch {
	case text == "prints":
		return block{kind: printed}, true, nil
	case strings.HasPrefix(text, "screen: "):
		return block{kind: shown}, true, nil
	}
	if m := other.FindStringSubmatch(text); m != nil {
		b = block{kind: runBy, reason: m[2]}
		if m[1] == "not run" {
			b.kind = notRun
		}
		return b, true, nil
	}
	if m := goMark.FindStringSubmatch(text); m != nil {
		return block{kind: goCode, in: m[1], as: m[2]}, true, nil
	}
	m := typedAt.FindStringSubmatch(text)
	if m == nil {
		for _, word := range []string{"typed", "run", "not run", "prints", "Go"} {
			if strings.HasPrefix(text, word) {
				return b, true, fmt.Errorf("%q; see the comment of package docs for what it may be", text)
			}
		}
		return b, false, nil
	}
	b = block{kind: typedHere, places: strings.Split(m[1], ", "), says: m[2], atEnd: m[4] != "", minutes: m[6] != ""}
	number := func(digits string) int {
		n, _ := strconv.Atoi("0" + digits) // digits alone, by the expression
		return n
	}
	b.each, b.exits = time.Duration(number(m[3]))*time.Second, number(m[5])
	for _, p := range b.places {
		if !place.MatchString(p) {
			return b, true, fmt.Errorf("place %q; want this machine, switch or host N", p)
		}
	}
	return b, true, nil
}

// blocks returns the fenced blocks of a document, in order.
func blocks(document string) (bs []block, err error) {
	var errs []error
	var next *block // the block whose comment was read
	section, fence := "", ""
	for i, line := range strings.Split(document, "\n") {
		at := func(err error) { errs = append(errs, fmt.Errorf("line %d: %w", i+1, err)) }
		ticks := line[:len(line)-len(strings.TrimLeft(line, " `"))]
		switch {
		case fence != "" && line == fence:
			fence = ""
		case fence != "":
			last := &bs[len(bs)-1]
			last.text += line + "\n"
		case strings.HasSuffix(ticks, "```"):
			fence = ticks
			b := block{}
			if next != nil {
				b, next = *next, nil
			}
			b.section, b.language, b.line = section, strings.TrimLeft(line, " `"), i+1
			bs = append(bs, b)
		case programs.MatchString(strings.TrimPrefix(line, "    ")) && strings.HasPrefix(line, "    "):
			at(errors.New("an indented command: make it a fenced block"))
		case line != "" && next != nil:
			at(errors.New("a block was to follow the comment"))
			next = nil
		case strings.HasPrefix(line, "## "):
			section = line[3:]
		case strings.HasPrefix(line, "<!-- ") && strings.HasSuffix(line, " -->"):
			b, ok, err := mark(line[5 : len(line)-4])
			if err != nil {
				at(err)
			} else if ok {
				next = &b
			}
		}
	}
	if fence != "" {
		errs = append(errs, errors.New("a block does not end"))
	}
	return bs, errors.Join(errs...)
}

// programs are those that a block without a language may not begin a line with.
var programs = regexp.MustCompile(`^(sudo|bin/gleam\w*|gleamd?|make|go|ip|tc|nft|ping|curl|apt|apt-get|dpkg|journalctl|systemctl|tshark|tcpdump|ethtool|export|cd|mkdir|` +
	`blockd|weights\.py|log-leader|log-follower|ib_\w+|rdma|mpirun|python3|gcc|cat|kill|sysctl|openssl) [^|]*$|^for \w+ in .*;`)

// faults returns the faults of a document's blocks of commands: none may be without a
// mark, nor hide as a block without a language.
func faults(bs []block) (errs []error) {
	for i, b := range bs {
		at := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("line %d: "+format, append([]any{b.line}, args...)...))
		}
		switch {
		case b.language == "sh" && (b.kind == unmarked || b.kind == printed):
			at("nothing says where these commands are typed, or why they are not: <!-- typed at: PLACE -->, <!-- run by: … --> or <!-- not run: REASON -->")
		case (b.kind == goCode) != (b.language == "go") && (b.kind == goCode || !wholeFile.MatchString(b.text)):
			at("a fragment of Go is a block of the language go, and has a comment that says what is around it: <!-- Go, as: … -->")
		case b.kind == goCode:
		case b.language != "sh" && b.kind != unmarked && b.kind != printed && b.kind != shown:
			at("commands are blocks of the language sh, not %q", b.language)
		case b.kind == printed && (b.language != "" || i == 0 || !printable(bs[:i])):
			at("this is to be what a typed block before it prints; there is none")
		case b.language == "" && b.kind == unmarked:
			for n, line := range strings.Split(b.text, "\n") {
				if programs.MatchString(line) {
					at("line %d of the block is a command: make it one of the language sh", n+1)
					break
				}
			}
		}
	}
	return errs
}

// wholeFile finds the package clause of a whole file.
var wholeFile = regexp.MustCompile(`(?m)^package \w+$`)

// printable says whether the last block but those that are printed is typed.
func printable(before []block) bool {
	for i := len(before) - 1; i >= 0; i-- {
		if before[i].kind != printed {
			return before[i].kind == typedHere
		}
	}
	return false
}
