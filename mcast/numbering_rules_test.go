// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "testing"

// Transcripts of the verification of numberings, with its times and bounds.

func TestR52_RoundsOfProbes(t *testing.T)               { runTranscript(t) }
func TestR52_EmptyAnswers(t *testing.T)                 { runTranscript(t) }
func TestR53_QuorumBegins(t *testing.T)                 { runTranscript(t) }
func TestR53_GapBeforeAJoiner(t *testing.T)             { runTranscript(t) }
func TestR55_BelievedTheThirdTime(t *testing.T)         { runTranscript(t) }
func TestR55_TheLastReceiverIsMisnumbered(t *testing.T) { runTranscript(t) }
func TestR55_NobodyAnswers(t *testing.T)                { runTranscript(t) }
func TestR55_SilentForExactlyDeadAfter(t *testing.T)    { runTranscript(t) }
func TestR55_EachFromItsFirstProbe(t *testing.T)        { runTranscript(t) }
func TestR55_WhatIsBeforeIsCompleteFirst(t *testing.T)  { runTranscript(t) }
func TestR54_NumberedOtherwise(t *testing.T)            { runTranscript(t) }
func TestR73_TwoAnswersInARow(t *testing.T)             { runTranscript(t) }
func TestR73_EachAtItsTime(t *testing.T)                { runTranscript(t) }
func TestR73_SilentFromItsProbe(t *testing.T)           { runTranscript(t) }

func TestR31_UnverifiedSource(t *testing.T) { runTranscript(t) }

func TestR52_AllHaveAnswered(t *testing.T) { runTranscript(t) }
func TestR53_AskedAgain(t *testing.T)      { runTranscript(t) }
func TestR53_TheSourceLeaves(t *testing.T) { runTranscript(t) }
func TestR54_TheOthersGoOn(t *testing.T)   { runTranscript(t) }
func TestR55_OneEndsTheGroup(t *testing.T) { runTranscript(t) }
