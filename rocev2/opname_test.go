// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rocev2

import (
	"strings"
	"testing"
)

// TestOpcodeNames checks that the known opcodes, and no others, have names, which ParseOpcode
// reads in all their forms.
func TestOpcodeNames(t *testing.T) {
	for i := range 256 {
		o := Opcode(i)
		if !o.Is(OpKnown) {
			if !strings.HasPrefix(o.Name(), "opcode 0x") {
				t.Errorf("%#x is not known and has the name %s", i, o.Name())
			}
			continue
		}
		for _, name := range []string{o.Name(), strings.ToLower(o.Name()), strings.ReplaceAll(o.Name(), "_", "-")} {
			if got, err := ParseOpcode(name); err != nil || got != o {
				t.Errorf("ParseOpcode(%q) = %#x, %v: want %#x", name, uint8(got), err, i)
			}
		}
	}
	if _, err := ParseOpcode("write"); err == nil || !strings.Contains(err.Error(), "write-middle") {
		t.Errorf("ParseOpcode(write): %v, want an error that names the opcodes", err)
	}
}
