// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package hello is how a switch learns which of its neighbours are gleamd switches: an
// authenticated message on every port, ten times a second, and the state machine of the
// adjacency that follows from it. docs/PROTOCOL.md §11 has the bytes and the table of
// states.
//
// The package is pure. Time is a duration since an epoch of the driver, and no two switches
// compare clocks: a hello is fresh because it repeats a number that its receiver has drawn
// for this neighbour.
package hello
