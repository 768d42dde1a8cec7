// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "testing"

func TestR72_PSNOfAnotherQueuePair(t *testing.T)    { runTranscript(t) }
func TestR72_TheFirstPacketWasLost(t *testing.T)    { runTranscript(t) }
func TestR72_AnotherVirtualQPN(t *testing.T)        { runTranscript(t) }
func TestR72_GapWhileNumbersAreProved(t *testing.T) { runTranscript(t) }
