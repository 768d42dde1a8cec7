// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "testing"

// Transcripts of receivers that are silent or lag, with the times and bounds.

func TestR23_ExactlyDeadAfter(t *testing.T) { runTranscript(t) }
func TestR23_TwoAreSilent(t *testing.T)     { runTranscript(t) }
func TestR23_RewoundOnce(t *testing.T)      { runTranscript(t) }
func TestR38_PeriodOfTheCheck(t *testing.T) { runTranscript(t) }
func TestR38_ExactlyTheLimit(t *testing.T)  { runTranscript(t) }
