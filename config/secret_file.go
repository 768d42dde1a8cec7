// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import "fmt"

// ReadSecret reads a secret from a file as secret_file in the configuration
// does: hexadecimal digits, not open to everyone. Programs of hosts take the
// key that they share with the switch by it.
func ReadSecret(path string) (Secret, error) {
	s, err := readSecret(path)
	if err != nil {
		return s, fmt.Errorf("read the secret: %w", err)
	}
	return s, nil
}
