// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "testing"

// Losses on links between switches: R92 and up.

func TestR92_OnePacketForASwitch(t *testing.T) { runTranscript(t) }
func TestR92_HolesPassOnce(t *testing.T)       { runTranscript(t) }
func TestR92_BehindASwitch(t *testing.T)       { runTranscript(t) }
func TestR92_FullPort(t *testing.T)            { runTranscript(t) }
func TestR47_NAKBelowAHole(t *testing.T)       { runTranscript(t) }
func TestR106_GapIsNamed(t *testing.T)         { runTranscript(t) }
func TestR106_NamedPacketsGoOut(t *testing.T)  { runTranscript(t) }

func TestR93_LagBySwitches(t *testing.T)     { runTranscript(t) }
func TestR93_LevelsOfAnUpdate(t *testing.T)  { runTranscript(t) }
func TestR93_LagTimeBySwitches(t *testing.T) { runTranscript(t) }

// TestR93_WithinComparisons: a limit stays within what circular comparisons allow.
func TestR93_WithinComparisons(t *testing.T) {
	g := &group{extra: &extra{forwards: []LegID{1}, levels: []uint8{maxLevels}}}
	for _, c := range [][2]int32{{3, 3 << maxLevels}, {64, maxBehind}, {maxBehind, maxBehind}, {0, 0}} {
		if g.lag.psns = c[0]; g.lagPSNsOf(1) != c[1] || g.lagPSNsOf(0) != c[0] {
			t.Errorf("limit %d: %d for a switch, want %d, and %d for a receiver", c[0], g.lagPSNsOf(1), c[1], g.lagPSNsOf(0))
		}
	}
}
func TestR108_SilentTowardTheRoot(t *testing.T)  { runTranscript(t) }
func TestR108_LagTimeTowardTheRoot(t *testing.T) { runTranscript(t) }
func TestR108_StrictTowardTheRoot(t *testing.T)  { runTranscript(t) }
func TestR108_LagTowardTheRoot(t *testing.T)     { runTranscript(t) }
func TestR108_TheRootDecides(t *testing.T)       { runTranscript(t) }

func TestR110_DeadBeforeTheCheck(t *testing.T) { runTranscript(t) }
func TestR110_SilentTogether(t *testing.T)     { runTranscript(t) }
func TestR95_WindowAfterRestart(t *testing.T)  { runTranscript(t) }
