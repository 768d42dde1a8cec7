// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "testing"

func TestR109_GapBelowAcked(t *testing.T)         { runTranscript(t) }
func TestR109_AMemberThatLackedIt(t *testing.T)   { runTranscript(t) }
func TestR109_MessageBeforeTheFirst(t *testing.T) { runTranscript(t) }
