// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "testing"

// Transcripts of sources that leave, and of groups that are put anew.

func TestR31_LeavingBehindAQuorum(t *testing.T) { runTranscript(t) }
func TestR31_LeavingAFailedGroup(t *testing.T)  { runTranscript(t) }
func TestR42_PutAnew(t *testing.T)              { runTranscript(t) }
func TestR58_PauseBeforeTheData(t *testing.T)   { runTranscript(t) }
func TestR73_EvictedWithItsSource(t *testing.T) { runTranscript(t) }
func TestR40_ExactlyTheQuorum(t *testing.T)     { runTranscript(t) }
