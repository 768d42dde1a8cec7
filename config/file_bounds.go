// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io"
	"os"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/gleam-rdma/gleam/config/yamlpanic"
)

// Bounds of a configuration file. The lexer's time is linear. The parser recurses for
// each level, and its time is quadratic in the depth and in the keys of a mapping: 60 kB
// of [ took it 28 s and 5.5 GB. So both are bounded before it runs.
const (
	fileMax  = 64 << 10 // bytes
	depthMax = 16       // levels of lists and mappings; a configuration has 5
	keysMax  = 4096     // keys in all mappings together
)

// readBounded reads a file of at most most bytes, and one more byte at most, which
// shows that it is longer.
func readBounded(f *os.File, most int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(data) > most {
		err = fmt.Errorf("%s is longer than %d bytes", f.Name(), most)
	}
	return data, err
}

// tree makes the syntax tree of a file that keeps the bounds. Else it is nil, and ok is
// false if the reason has been reported already.
func (d *decoder) tree(data []byte) (f *ast.File, ok bool, err error) {
	ok = true // also after a panic
	defer yamlpanic.Recover(&err)
	tokens := lexer.Tokenize(yamlpanic.Text(data))
	if line, reason := checkSize(tokens); reason != "" {
		d.fail(line, "", "", reason)
		return nil, false, nil
	}
	// Repeated keys are allowed here so that all of them are found, not the first.
	f, err = parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	return f, true, err
}

// checkSize returns in which line a file exceeds the bounds of depth and keys, and how.
func checkSize(tokens token.Tokens) (line int, reason string) {
	var columns []int // columns of the lists and mappings in block style around a token
	flow, keys := 0, 0
	for i, t := range tokens {
		at := t
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow = max(0, flow-1)
		case token.MappingValueType:
			keys++
			if i > 0 {
				at = tokens[i-1] // a key's column is that of its mapping
			}
		case token.SequenceEntryType, token.MappingKeyType:
		default:
			continue
		}
		if flow == 0 && t.Type != token.SequenceEndType && t.Type != token.MappingEndType {
			column := at.Position.Column
			for len(columns) > 0 && columns[len(columns)-1] > column {
				columns = columns[:len(columns)-1]
			}
			if len(columns) == 0 || columns[len(columns)-1] < column {
				columns = append(columns, column)
			}
		}
		switch {
		case flow+len(columns) > depthMax:
			return t.Position.Line, fmt.Sprintf("more than %d lists and mappings inside each other", depthMax)
		case keys > keysMax:
			return t.Position.Line, fmt.Sprintf("more than %d keys in all", keysMax)
		}
	}
	return 0, ""
}
