// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package yamlpanic makes up for what the YAML library lacks: its panics become errors, and a byte
// order mark is no part of a file.
package yamlpanic

import (
	"bytes"
	"fmt"
)

// Text returns the text of a file without its byte order mark, which the library does not know, nor
// what reads the files that a YAML file names.
func Text(file []byte) string { return string(bytes.TrimPrefix(file, []byte("\ufeff"))) }

// Recover, deferred, makes a panic of the YAML library the error of the function that defers it: a
// file must not end a program.
func Recover(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("not valid YAML: the library fails: %v", r)
	}
}
