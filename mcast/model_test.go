// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "testing"

// Transcripts that package model has written, or what it found as one.

func TestR18_NeighbourAnswersOneSource(t *testing.T) { runTranscript(t) }
