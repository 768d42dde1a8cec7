// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "testing"

// Losses on links between switches: R92 and up.

func TestR92_OnePacketForASwitch(t *testing.T) { runTranscript(t) }
func TestR92_HolesPassOnce(t *testing.T)       { runTranscript(t) }
func TestR92_BehindASwitch(t *testing.T)       { runTranscript(t) }
func TestR92_FullPort(t *testing.T)            { runTranscript(t) }
