// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/gleam-rdma/gleam/config/trusted"
)

// ReadSecret reads a secret from a file as secret_file in the configuration
// does: hexadecimal digits, which others may not read. Programs of hosts take the
// key that they share with the switch by it.
func ReadSecret(path string) (Secret, error) {
	s, err := readSecret(path, trusted.Read)
	if err != nil {
		return s, fmt.Errorf("read the secret: %w", explainSecret(path, err))
	}
	return s, nil
}

// explainSecret adds to the error of a secret's file that is not there how one is made.
func explainSecret(path string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if full, e := filepath.Abs(path); e == nil {
		path = full
	}
	return fmt.Errorf("%w; if no machine has it yet, make it: (umask 077; openssl rand -hex 32 > %s)", err, path)
}

// minDistinctBytes is the least number of different bytes of a secret. 32 random bytes
// practically never have fewer than 12.
const minDistinctBytes = 12

// secretWeakness returns the reason for which b is guessable, or "".
func secretWeakness(b []byte) string {
	var seen [256]bool
	distinct := 0
	for _, x := range b {
		if !seen[x] {
			seen[x] = true
			distinct++
		}
	}
	if distinct == 1 {
		return "is one byte repeated"
	}
	for p := 2; p <= len(b)/2; p++ {
		if string(b[p:]) == string(b[:len(b)-p]) {
			return fmt.Sprintf("is a pattern of %d bytes repeated", p)
		}
	}
	if distinct < minDistinctBytes {
		return fmt.Sprintf("has only %d different bytes", distinct)
	}
	if isSequence(b) {
		return "counts up or down"
	}
	return ""
}

// isSequence reports that half of the steps from one byte of b to the next are the same one:
// 00 01 02 ..., or the alphabet. Of 31 random steps practically never more than 5 are.
func isSequence(b []byte) bool {
	var steps [256]int
	for i := 1; i < len(b); i++ {
		s := b[i] - b[i-1]
		if steps[s]++; 2*steps[s] >= len(b)-1 {
			return true
		}
	}
	return false
}
