// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package yamlpanic turns panics of the YAML library into errors.
package yamlpanic

import "fmt"

// Recover, deferred, makes a panic of the YAML library the error of the function that defers it: a
// file must not end a program.
func Recover(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("not valid YAML: the library fails: %v", r)
	}
}
