// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/gleam-rdma/gleam/config/trusted"
)

// decoder walks the syntax tree and collects errors. It does without the
// library's own decoding into structs because that stops at the first error and
// prints the source around it, secrets included.
type decoder struct {
	file  string
	files *trusted.Files // that the configuration names
	errs  Errors
	known map[string]bool // every key path that a mapping has read, with [] for list elements

	configuration *Config
	inline        value // the first secret that stands in the file itself; line 0: none does
}

// value is a node with its path.
type value struct {
	node ast.Node
	key  string // "umem.frames"
	line int    // of the node, or of its key if it has none
}

// field is a key of a mapping and the reader of its value.
type field struct {
	name string
	read func(value)
}

func (d *decoder) fail(line int, key, text, reason string) {
	if confidential(key, text) {
		text = ""
	}
	d.errs = append(d.errs, &Error{File: d.file, Line: line, Key: key, Text: text, Reason: reason})
}

// failAt reports v's text as the offender.
func (d *decoder) failAt(v value, format string, args ...any) {
	d.fail(v.line, v.key, text(v.node), fmt.Sprintf(format, args...))
}

// text returns the source text of a scalar, "" of anything else.
func text(n ast.Node) string {
	if _, ok := n.(ast.ScalarNode); ok && n.Type() != ast.NullType && n.GetToken() != nil {
		return n.GetToken().Value
	}
	return ""
}

// kind names the type of a node as YAML does.
func kind(n ast.Node) string {
	switch n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode, *ast.LiteralNode:
		return "a string"
	case *ast.IntegerNode:
		return "a number"
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number with a fraction"
	case *ast.BoolNode:
		return "true or false"
	}
	return "YAML's " + n.Type().YAMLName()
}

func (d *decoder) wrongKind(v value, want string) {
	d.failAt(v, "is %s; want %s", kind(v.node), want)
}

// mapping reads a mapping with the given keys and returns those that exist. An empty
// section is one without keys.
func (d *decoder) mapping(v value, fields ...field) map[string]value {
	for _, f := range fields {
		d.known[wildcard(join(v.key, f.name))] = true
	}
	var pairs []*ast.MappingValueNode
	switch n := v.node.(type) {
	case nil, *ast.NullNode:
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	default:
		d.wrongKind(v, "a mapping")
		return nil
	}
	seen := make(map[string]value)
	for _, pair := range pairs {
		name, line := text(pair.Key), lineOf(pair.Key)
		at := value{node: pair.Value, key: join(v.key, name), line: line}
		if l := lineOf(pair.Value); l != 0 {
			at.line = l
		}
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
		first, again := seen[name]
		switch {
		case i < 0:
			d.fail(line, v.key, name, "unknown key; want one of "+names(fields))
		case again:
			d.fail(line, v.key, name, fmt.Sprintf("key is there already, in line %d", first.line))
		default:
			seen[name] = at
			fields[i].read(at)
		}
	}
	return seen
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// wildcard turns "ports[3].name" into "ports[].name".
func wildcard(key string) string {
	var b strings.Builder
	skip := false
	for _, r := range key {
		skip = skip && r != ']'
		if !skip {
			b.WriteRune(r)
		}
		skip = skip || r == '['
	}
	return b.String()
}

func names(fields []field) string {
	s := make([]string, len(fields))
	for i, f := range fields {
		s[i] = f.name
	}
	return strings.Join(s, ", ")
}

// list reads each element of a list.
func (d *decoder) list(v value, read func(value)) {
	n, ok := v.node.(*ast.SequenceNode)
	if !ok {
		d.wrongKind(v, "a list")
		return
	}
	for i, e := range n.Values {
		at := value{node: e, key: fmt.Sprintf("%s[%d]", v.key, i), line: v.line}
		if l := lineOf(e); l != 0 {
			at.line = l
		}
		read(at)
	}
}

func (d *decoder) str(v value) (string, bool) {
	switch n := v.node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		d.wrongKind(v, "a string (put it in quotes)")
	default:
		d.wrongKind(v, "a string")
	}
	return "", false
}

func (d *decoder) boolean(dst *bool) func(value) {
	return func(v value) {
		if n, ok := v.node.(*ast.BoolNode); ok {
			*dst = n.Value
			return
		}
		d.wrongKind(v, "true or false")
	}
}

// integer reads a number in [low, high].
func (d *decoder) integer(v value, low, high int64) (int64, bool) {
	n, ok := v.node.(*ast.IntegerNode)
	if !ok {
		d.wrongKind(v, "a number")
		return 0, false
	}
	var i int64
	switch x := n.Value.(type) {
	case int64:
		i = x
	case uint64:
		i, ok = int64(x), x <= 1<<63-1
	default:
		ok = false
	}
	if !ok || i < low || i > high {
		d.failAt(v, "want a number from %d to %d", low, high)
		return 0, false
	}
	return i, true
}

func (d *decoder) int(dst *int, low, high int64) func(value) {
	return func(v value) {
		if i, ok := d.integer(v, low, high); ok {
			*dst = int(i)
		}
	}
}

// power reads a power of two in [low, high].
func (d *decoder) power(dst *int, low, high int64) func(value) {
	return func(v value) {
		i, ok := d.integer(v, low, high)
		switch {
		case ok && i&(i-1) != 0:
			d.failAt(v, "want a power of two from %d to %d", low, high)
		case ok:
			*dst = int(i)
		}
	}
}

// duration reads a Go duration, such as 50us or 1m30s, in [low, high].
func (d *decoder) duration(dst *time.Duration, low, high time.Duration) func(value) {
	return func(v value) {
		t := text(v.node)
		if _, ok := v.node.(*ast.StringNode); !ok && t != "0" {
			d.wrongKind(v, "a duration with its unit, such as 50us, 2s or 10m")
			return
		}
		x, err := time.ParseDuration(t)
		switch {
		case err != nil:
			d.failAt(v, "want a duration such as 50us, 2s or 10m")
		case x < low || x > high:
			d.failAt(v, "want a duration from %v to %v", low, high)
		default:
			*dst = x
		}
	}
}

// choice reads one of a set of words.
func choice[T ~string](d *decoder, dst *T, words ...T) func(value) {
	return func(v value) {
		s, ok := d.str(v)
		if !ok {
			return
		}
		if !slices.Contains(words, T(s)) {
			want := make([]string, len(words))
			for i, w := range words {
				want[i] = string(w)
			}
			d.failAt(v, "want one of %s", strings.Join(want, ", "))
			return
		}
		*dst = T(s)
	}
}
