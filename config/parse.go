// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/gleam-rdma/gleam/config/trusted"
)

// MissingHint is the beginning of what the error of Load says to do about a file that does not exist.
const MissingHint = ": -c names another file"

// Load reads and parses a configuration file. One with secrets that others may read or change
// is refused, as the files of secrets are.
func Load(path string) (*Config, error) { return LoadBy(path, &trusted.Files{}) }

// LoadBy is Load for a process that has given up rights since files has read the files that
// the configuration names.
func LoadBy(path string, files *trusted.Files) (*Config, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("configuration: %w%s; make install and the package gleamd bring /etc/gleam/gleamd.yaml", err, MissingHint)
	} else if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	data, err := readBounded(f, fileMax)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	st, err := f.Stat() // of the open file, not of the name's present one
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return parse(path, data, st, files).result()
}

// Parse parses a configuration. name stands for the file in errors, and a
// relative secret_file is looked up in its directory. The error is of type
// Errors.
func Parse(name string, data []byte) (*Config, error) {
	return parse(name, data, nil, &trusted.Files{}).result()
}

// parse parses a configuration, of the file st if it is one.
func parse(name string, data []byte, st fs.FileInfo, files *trusted.Files) *decoder {
	d := &decoder{file: name, files: files, where: make(map[string]int), configuration: Default()}
	if root, line := d.document(data); len(d.errs) == 0 {
		if d.section(reflect.ValueOf(d.configuration).Elem(), value{node: root, line: lineOf(root)}) != nil {
			d.check(d.configuration, line)
		}
	}
	if s := d.inline; s.line > 0 && st != nil {
		if err := trusted.Check(name, st, trusted.Secret); err != nil {
			d.fail(s.line, s.key, "", fmt.Sprintf("stands in a file that %v", err))
		}
	}
	slices.SortStableFunc(d.errs, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	return d
}

// result returns the configuration, or what is wrong with it.
func (d *decoder) result() (*Config, error) {
	if len(d.errs) > 0 {
		return nil, d.errs
	}
	return d.configuration, nil
}

// document parses the YAML and returns its only document's body.
func (d *decoder) document(data []byte) (body ast.Node, line int) {
	if len(data) > fileMax {
		d.fail(0, "", "", fmt.Sprintf("file has %d bytes; at most %d are read", len(data), fileMax))
		return nil, 0
	}
	f, ok, err := d.tree(data)
	switch {
	case !ok:
		return nil, 0
	case err != nil:
		d.syntax(err, data)
		return nil, 0
	}
	var bodies []ast.Node
	for _, doc := range f.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return nil, 0
	case 1:
		return bodies[0], lineOf(bodies[0])
	}
	d.fail(lineOf(bodies[1]), "", "", "a second YAML document; want one")
	return nil, 0
}

// syntax reports an error of the YAML parser, with its line unless that may hold a
// secret. (The parser's own excerpt would show the lines around it, too.)
func (d *decoder) syntax(err error, data []byte) {
	var located yaml.Error
	if !errors.As(err, &located) || located.GetToken() == nil {
		d.fail(0, "", "", "not valid YAML")
		return
	}
	line := located.GetToken().Position.Line
	text, reason := "", "not valid YAML: "+located.GetMessage()
	if lines := strings.Split(string(data), "\n"); line >= 1 && line <= len(lines) {
		text = strings.TrimSpace(lines[line-1])
	}
	if strings.Contains(string(data), "secret") {
		text, reason = "", "not valid YAML"
	}
	d.fail(line, "", text, reason)
}

// lineOf returns the line where n begins, 0 if unknown.
func lineOf(n ast.Node) int {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		n = m.Values[0].Key // a block mapping's own token is its first colon
	}
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0
	}
	return n.GetToken().Position.Line
}
