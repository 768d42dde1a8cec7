// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestRelayVectors: testdata/relays.hex has the bytes of a relay of each kind, one a line behind its
// kind, with a proof and an HMAC of zeros. The tests of the Wireshark dissector read it.
func TestRelayVectors(t *testing.T) {
	var b strings.Builder
	for _, m := range relayExamples() {
		x := append(encodeRelay(&m), make([]byte, MACLen)...)
		if m.id.key != 0 && !m.unproved {
			x = append(x, make([]byte, MACLen)...)
		}
		binary.BigEndian.PutUint16(x[relayKeyOffset:], 3)
		binary.BigEndian.PutUint16(x[relayLengthOffset:], uint16(len(x)))
		fmt.Fprintf(&b, "%s %x\n", m.kind, x)
	}
	want, err := os.ReadFile("testdata/relays.hex")
	if err != nil || b.String() != string(want) {
		t.Errorf("testdata/relays.hex (%v) should be\n%s", err, &b)
	}
}
