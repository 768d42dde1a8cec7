// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package store has what the control plane remembers for others, and what waits for that: the journal
// of events, for operators; the state file, for the time after a restart; the outbox, whose messages leave
// when the file has what they say. It knows nothing of the control loop that fills them.
package store
