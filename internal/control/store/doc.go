// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package store has what the control plane remembers for others: the journal of events, for
// operators. It knows nothing of the control loop that fills it.
package store
