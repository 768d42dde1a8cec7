// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/gleam-rdma/gleam/config/trusted"
)

// decoder walks the syntax tree and collects errors. It does without the
// library's own decoding into structs because that stops at the first error and
// prints the source around it, secrets included.
type decoder struct {
	file  string
	files *trusted.Files // the files that the configuration names
	errs  Errors
	where map[string]int // lines of the values that have to be unique, by key path, with [] for list elements, and value

	configuration *Config
	inline        value // the first secret that stands in the file itself; line 0: none does
}

// value is a node with its path.
type value struct {
	node ast.Node
	key  string // "umem.frames"
	line int    // the line of the node, or of its key if the node has none
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

// section reads the keys of a struct, each by its row, and returns those that exist.
func (d *decoder) section(at reflect.Value, v value) map[string]value {
	fields := make([]field, at.NumField())
	for i := range fields {
		tag := at.Type().Field(i).Tag
		fields[i] = field{tag.Get("yaml"), func(v value) { d.read(at.Field(i), tag, v) }}
	}
	seen := d.mapping(v, fields...)
	if c, ok := at.Addr().Interface().(interface {
		check(d *decoder, v value, seen map[string]value)
	}); ok && seen != nil {
		c.check(d, v, seen)
	}
	return seen
}

// sections reads a list of structs. Each begins with the defaults of its keys.
func (d *decoder) sections(list reflect.Value, v value) {
	fresh := reflect.New(list.Type().Elem()).Elem()
	setDefaults(fresh)
	d.list(v, func(v value) {
		at := reflect.New(fresh.Type()).Elem()
		at.Set(fresh)
		if d.section(at, v) != nil {
			list.Set(reflect.Append(list, at))
		}
	})
}

// isSection reports whether t is a struct whose fields are keys.
func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[Config]().PkgPath() && t.NumField() > 0 && t.Field(0).Tag.Get("yaml") != ""
}

// mapping reads a mapping with the given keys and returns those that exist. An empty
// section is one without keys.
func (d *decoder) mapping(v value, fields ...field) map[string]value {
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
