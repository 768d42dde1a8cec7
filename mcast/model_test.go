// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"path/filepath"
	"testing"
)

// Transcripts that package model has written, or what it found as one.

func TestR18_NeighbourAnswersOneSource(t *testing.T) { runTranscript(t) }

func TestModelTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/Model_*")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { runTranscriptFile(t, file) })
	}
}
