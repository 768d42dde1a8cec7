// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/gleam-rdma/gleam/config/trusted"
)

// Secret lengths in bytes. An HMAC key should not be shorter than the hash's output
// (RFC 2104 §3), which the envelope protocol requires.
const (
	secretMin = 32
	secretMax = 256
)

// secretFileMax bounds the bytes that are read of a secret file: hex, prefix, white
// space.
const secretFileMax = 4096

const redacted = "REDACTED"

// Secret is a key that prints and marshals as REDACTED, whatever the verb. The
// bytes are behind two pointers, so that printing a struct with an unexported
// Secret, where fmt cannot call Format, shows an address at most. (Behind one,
// fmt follows it for a verb that does not fit, such as %s.)
type Secret struct{ bytes **[]byte }

// newSecret makes a Secret of secretMin to secretMax bytes.
func newSecret(b []byte) (Secret, error) {
	if len(b) < secretMin || len(b) > secretMax {
		return Secret{}, fmt.Errorf("secret has %d bytes; want %d to %d: openssl rand -hex 32", len(b), secretMin, secretMax)
	}
	if why := secretWeakness(b); why != "" {
		return Secret{}, fmt.Errorf("secret %s; draw a random one: openssl rand -hex 32", why)
	}
	b = append([]byte(nil), b...)
	p := &b
	return Secret{&p}, nil
}

// Bytes returns the key itself. Do not change or log it.
func (s Secret) Bytes() []byte {
	if s.bytes == nil {
		return nil
	}
	return **s.bytes
}

// String returns "REDACTED".
func (Secret) String() string { return redacted }

// GoString returns "REDACTED".
func (Secret) GoString() string { return redacted }

// Format prints "REDACTED" for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText returns "REDACTED".
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON returns "REDACTED" as a JSON string.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalYAML returns "REDACTED".
func (Secret) MarshalYAML() (any, error) { return redacted, nil }

const hexPrefix = "hex:"

// parseSecret reads hex digits; errors do not repeat them.
func parseSecret(digits string) (Secret, error) {
	b, err := hex.DecodeString(digits)
	if err != nil {
		return Secret{}, errors.New("secret is not an even number of hexadecimal digits; draw a random one: openssl rand -hex 32")
	}
	return newSecret(b)
}

// readSecret reads a secret from a file of hexadecimal digits, with or without
// the prefix, as `openssl rand -hex 32` writes them.
func readSecret(path string, by trusted.Reader) (Secret, error) {
	data, err := by(path, secretFileMax, trusted.Secret)
	if err != nil {
		return Secret{}, err
	}
	return parseSecret(strings.TrimPrefix(strings.TrimSpace(string(data)), hexPrefix))
}

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
