// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// FuzzSecret: a secret that is accepted has the bytes of its digits, and neither
// it nor an error shows them.
func FuzzSecret(f *testing.F) {
	f.Add(goodHex)
	f.Add(strings.ToUpper(goodHex))
	f.Add("00")
	f.Fuzz(func(t *testing.T, digits string) {
		s, err := parseSecret(digits)
		if err == nil && !strings.EqualFold(hex.EncodeToString(s.Bytes()), digits) {
			t.Fatalf("%q is %x", digits, s.Bytes())
		}
		if text := fmt.Sprint(s, err); len(digits) >= 16 && strings.Contains(text, digits) {
			t.Fatalf("shown: %s", text)
		}
	})
}
