// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package neighbours runs the hello protocol (package hello, docs/PROTOCOL.md §11) at the
// ports of the switch: a packet socket and a goroutine for each, so that a flood at one port
// delays no hello of another.
//
// The state of all links is read as a whole, by Runtime.Links. Table numbers the neighbours
// and finds what has changed since it was last given that state: an event that nobody has
// seen is not lost.
package neighbours
