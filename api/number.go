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

// MarshalText implements encoding.TextMarshaler.
func (n QPN) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "0x%06x", uint32(n)), nil }

// MarshalText implements encoding.TextMarshaler.
func (n PSN) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "0x%06x", uint32(n)), nil }

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
