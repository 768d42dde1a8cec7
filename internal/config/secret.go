// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
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
		return Secret{}, fmt.Errorf("secret has %d bytes; want %d to %d", len(b), secretMin, secretMax)
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
		return Secret{}, errors.New("secret is not an even number of hexadecimal digits")
	}
	return newSecret(b)
}

// readSecret reads a secret from a file of hexadecimal digits, with or without
// the prefix, as `openssl rand -hex 32` writes them.
func readSecret(path string) (Secret, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe must not block until it has a writer
	if err != nil {
		return Secret{}, err
	}
	defer f.Close()
	st, err := f.Stat() // of the open file, not of the name's present one
	switch {
	case err != nil:
		return Secret{}, err
	case !st.Mode().IsRegular():
		return Secret{}, errors.New("not a regular file")
	case st.Mode().Perm()&0o007 != 0:
		return Secret{}, fmt.Errorf("open to everyone (mode %04o); run: chmod 600 %s", st.Mode().Perm(), path)
	case st.Mode().Perm()&0o020 != 0:
		return Secret{}, fmt.Errorf("its group may write to it (mode %04o); run: chmod g-w %s", st.Mode().Perm(), path)
	case st.Size() > secretFileMax:
		return Secret{}, fmt.Errorf("%d bytes long; want one line of hexadecimal digits", st.Size())
	}
	if s, ok := st.Sys().(*syscall.Stat_t); ok && s.Uid != 0 && int(s.Uid) != os.Geteuid() {
		return Secret{}, fmt.Errorf("belongs to user %d, who may change it; run: chown root %s", s.Uid, path)
	}
	data, err := readBounded(f, secretFileMax)
	if err != nil {
		return Secret{}, err
	}
	return parseSecret(strings.TrimPrefix(strings.TrimSpace(string(data)), hexPrefix))
}
