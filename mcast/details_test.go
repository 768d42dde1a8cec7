// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestR12_RewindIsNotAhead(t *testing.T)          { runTranscript(t) }
func TestR28_RefusedUntilItPassesAgain(t *testing.T) { runTranscript(t) }
func TestR28_OrderIsTheReceivers(t *testing.T)       { runTranscript(t) }

// TestR32_ConstantsAreDocumented: the constants of R32 in docs/AGGREGATION.md are those of
// the code.
func TestR32_ConstantsAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../docs/AGGREGATION.md")
	if err != nil {
		t.Fatal(err)
	}
	us := func(d time.Duration) string {
		if d%time.Millisecond == 0 {
			return fmt.Sprintf("%d ms", d.Milliseconds())
		}
		return fmt.Sprintf("%d us", d.Microseconds())
	}
	for what, value := range map[string]string{
		"weight halves in":                         us(cnpHalfLife),
		"CNPs to the source are apart by at least": us(cnpGap),
		"a leg is silent after":                    us(cnpSilence),
		"margin":                                   fmt.Sprintf("1/%d", cnpMargin),
	} {
		if row := "| " + what + " | " + value + " |\n"; !strings.Contains(string(b), row) {
			t.Errorf("docs/AGGREGATION.md has no row %q", row)
		}
	}
}
