// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package cm speaks the RDMA communication manager (IBTA volume 1, chapter 12, and annex
// A11) for a switch: it reads and writes the management datagrams (MADs) by which hosts
// connect their queue pairs. docs/CM.md is its design.
//
// A MAD has 256 bytes: a header of 24, and a message. Decode checks one once and returns
// a Message; what it accepts, Append writes again. Fields that no message of RoCE has
// (alternate path, LIDs, ECE) are not read, and written as Linux writes them.
//
// The package is pure: no sockets, clocks or randomness of its own.
package cm
