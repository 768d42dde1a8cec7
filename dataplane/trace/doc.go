// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package trace records packets of a worker for somebody else to read: which ones, a filter
// says. A Recorder has a bounded ring that the worker writes and another goroutine reads, and
// neither waits for the other: a packet that finds no room is counted and not recorded.
package trace
