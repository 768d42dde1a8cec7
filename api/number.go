// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// QPN is the number of a queue pair, of 24 bits. Its text is hexadecimal, such as
// 0x000011. JSON numbers are read as well.
type QPN uint32

// PSN is a packet sequence number, of 24 bits. Its text is hexadecimal, such as 0xfffff0.
// JSON numbers are read as well.
type PSN uint32

// Format prints 0x and six digits for the verbs v and s, and the number for all others.
func (n QPN) Format(s fmt.State, verb rune) { format24(s, verb, uint32(n)) }

// Format prints 0x and six digits for the verbs v and s, and the number for all others.
func (n PSN) Format(s fmt.State, verb rune) { format24(s, verb, uint32(n)) }

func format24(s fmt.State, verb rune, n uint32) {
	if verb == 'v' || verb == 's' {
		fmt.Fprintf(s, "0x%06x", n)
		return
	}
	fmt.Fprintf(s, fmt.FormatString(s, verb), n)
}

// MarshalText implements encoding.TextMarshaler.
func (n QPN) MarshalText() ([]byte, error) { return fmt.Append(nil, n), nil }

// MarshalText implements encoding.TextMarshaler.
func (n PSN) MarshalText() ([]byte, error) { return fmt.Append(nil, n), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (n *QPN) UnmarshalJSON(b []byte) error { return unmarshalNumber(b, (*uint32)(n)) }

// UnmarshalJSON implements json.Unmarshaler.
func (n *PSN) UnmarshalJSON(b []byte) error { return unmarshalNumber(b, (*uint32)(n)) }

// unmarshalNumber reads 17, "17" or "0x11". The ranges of 24 bits are the callers' to check.
func unmarshalNumber(b []byte, n *uint32) error {
	s := string(b)
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
	}
	if s == "null" {
		return nil
	}
	v, err := strconv.ParseUint(s, 0, 32)
	if err != nil {
		return fmt.Errorf("%.40s is no number such as 17 or \"0x11\"", b)
	}
	*n = uint32(v)
	return nil
}
