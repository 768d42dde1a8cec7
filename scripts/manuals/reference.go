// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
)

// entry is a key of config/reference.yaml, or several that one comment explains.
type entry struct {
	path    string // such as ports[].ecn.kmin
	value   string // the default, or an example if the key is in a comment
	example bool
	text    string // the comment, paragraphs parted by empty lines
	depth   int
	joined  bool // true: it is joined to the entry before, whose text it shares
}

var (
	keyLine  = regexp.MustCompile(`^( *)(- )?([a-z_]+):(?:\s+(.*))?$`)
	valueOf  = regexp.MustCompile(`^("[^"]*"|[^#]*[^#\s])?\s*(?:#\s*(.*))?$`)
	itemLine = regexp.MustCompile(`^ *- (\S+)$`)
)

// reference reads what config/reference.yaml has of each key: that file is the owner of
// the explanations. header is the comment at its top.
func reference(yaml string) (header string, entries []entry, err error) {
	type level struct {
		indent int
		path   string
	}
	var above []level
	var comment []string
	seen := make(map[string]bool)
	add := func(indent, key, value, text string, item, example bool) {
		at := len(indent)
		if item {
			at += 2
		}
		for len(above) > 0 && above[len(above)-1].indent >= at {
			above = above[:len(above)-1]
		}
		e := entry{path: key, value: value, text: text, depth: len(above), example: example}
		if n := len(above); n > 0 {
			if item || inList(entries, above[n-1].path) {
				e.path = strings.TrimSuffix(above[n-1].path, "[]") + "[]." + key
			} else {
				e.path = above[n-1].path + "." + key
			}
		}
		if !example {
			above = append(above, level{at, e.path})
		}
		if !seen[e.path] {
			e.joined = text == "" && example && len(entries) > 0 && entries[len(entries)-1].example
			entries = append(entries, e)
		}
		seen[e.path] = true
	}
	for n, line := range strings.Split(yaml, "\n") {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" {
			if len(entries) == 0 && header == "" {
				header, comment = strings.Join(comment, "\n"), nil
			}
			if len(comment) > 0 {
				comment = append(comment, "")
			}
			continue
		}
		if text, ok := strings.CutPrefix(trimmed, "#"); ok {
			text = strings.TrimPrefix(text, " ")
			m := keyLine.FindStringSubmatch(text)
			if m == nil || m[1] != "" || m[2] != "" || m[4] == "" || strings.ContainsAny(m[4], " ,") {
				comment = append(comment, text)
				continue
			}
			add(line[:strings.Index(line, "#")], m[3], m[4], paragraphs(comment), false, true)
			comment = nil
			continue
		}
		if m := itemLine.FindStringSubmatch(line); m != nil && len(entries) > 0 {
			last := &entries[len(entries)-1]
			last.value = strings.TrimPrefix(last.value+", "+m[1], ", ")
			continue
		}
		m := keyLine.FindStringSubmatch(line)
		if m == nil {
			return "", nil, fmt.Errorf("line %d of the reference is neither a comment, nor a key, nor an item: %s", n+1, line)
		}
		v := valueOf.FindStringSubmatch(m[4])
		if v == nil {
			return "", nil, fmt.Errorf("line %d of the reference has a value that is not understood: %s", n+1, line)
		}
		if v[2] != "" {
			if len(comment) > 0 {
				comment = append(comment, "")
			}
			comment = append(comment, v[2])
		}
		add(m[1], m[3], v[1], paragraphs(comment), m[2] != "", false)
		comment = nil
	}
	return header, entries, nil
}

// inList reports whether path is already known as a key of a list's items.
func inList(entries []entry, path string) bool {
	for _, e := range entries {
		if strings.HasPrefix(e.path, path+"[].") {
			return true
		}
	}
	return false
}

// paragraphs joins a comment; what it says of reloading gets a paragraph of its own.
func paragraphs(comment []string) string {
	var b strings.Builder
	for _, line := range comment {
		if strings.HasPrefix(line, "Reload:") || strings.HasPrefix(line, "Restart:") {
			b.WriteString("\n")
		}
		b.WriteString(line + "\n")
	}
	return strings.Trim(b.String(), "\n")
}

// term is the key with its value.
func (e *entry) term() string {
	switch {
	case e.example:
		return bold(e.path) + escape(": such as ") + bold(e.value)
	case e.value == "":
		return bold(e.path)
	}
	return bold(e.path + ": " + e.value)
}

// ofConfiguration makes gleamd.yaml(5).
func ofConfiguration(s stamp, yaml string) (file, error) {
	header, entries, err := reference(yaml)
	if err != nil {
		return file{}, err
	}
	p := newPage(s, "gleamd.yaml", 5, "configuration of gleamd")
	p.heading("SYNOPSIS")
	p.item(bold("/etc/gleam/gleamd.yaml"))
	p.heading("DESCRIPTION")
	p.text(header, false)
	p.heading("KEYS")
	p.text("A key below another one has the name of that one before it, with a dot; [] stands for each item of a list. The value is the default, or, of required keys, an example.", false)
	for _, e := range entries {
		switch {
		case e.depth == 0:
			p.section(e.path)
			p.text(e.text, false)
			if e.value != "" {
				p.paragraph(e.term())
			}
		case e.joined:
			p.item(e.term())
			p.text("As before.", true)
		default:
			p.item(e.term())
			p.text(e.text, true)
		}
	}
	p.heading("SEE ALSO")
	fmt.Fprintln(p, see("gleamd", 8)+", "+see("gleam", 1))
	return file{"gleamd.yaml", 5, p.String()}, nil
}
