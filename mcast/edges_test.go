// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "testing"

// Further transcripts of the rules. Each detects a mistake that the other transcripts do
// not detect (make mutants).

func TestR04_MinimumAtTheWrap(t *testing.T)             { runTranscript(t) }
func TestR06_FeedbackFromLongAgo(t *testing.T)          { runTranscript(t) }
func TestR12_DuplicateFromLongAgo(t *testing.T)         { runTranscript(t) }
func TestR17_LateDuplicateAtRest(t *testing.T)          { runTranscript(t) }
func TestR17_SourceHasAPlace(t *testing.T)              { runTranscript(t) }
func TestR18_NakBelongsToItsTurn(t *testing.T)          { runTranscript(t) }
func TestR23_OwingNothingIsNoSilence(t *testing.T)      { runTranscript(t) }
func TestR27_MembersWithoutWindow(t *testing.T)         { runTranscript(t) }
func TestR29_TheLastPacketAgain(t *testing.T)           { runTranscript(t) }
func TestR32_OnlyTheMostCongestedLegMarks(t *testing.T) { runTranscript(t) }
func TestR32_WeightsDecay(t *testing.T)                 { runTranscript(t) }
func TestR23_SlowIsNotSilent(t *testing.T)              { runTranscript(t) }
func TestR23_SilenceOfAllRemovesNobody(t *testing.T)    { runTranscript(t) }
func TestR27_WindowAtTheTop(t *testing.T)               { runTranscript(t) }
func TestR30_NoJoinAtARetransmission(t *testing.T)      { runTranscript(t) }
func TestR38_QuorumIsNotShed(t *testing.T)              { runTranscript(t) }
func TestR41_TargetsEndWithTheirSource(t *testing.T)    { runTranscript(t) }
func TestR23_WaitingForTheSource(t *testing.T)          { runTranscript(t) }
