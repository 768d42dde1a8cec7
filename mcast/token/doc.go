// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package token decides which member of a group may be the source, in a tree of switches:
// the right is a token that moves along the tree's edges, after Raymond's mutual
// exclusion (ACM TOCS 7(1), 1989). docs/TREES.md has the protocol, its promises and what
// it demands of the switch around it.
//
// A Machine is one switch's part in one group. It is pure: time, messages of neighbours
// and requests of members come in by its methods, messages and actions go out in an
// Output. The driver of a machine follows four rules:
//
//  1. It calls Receive for each authentic message of a neighbour, Advance when the time
//     of NextDeadline has come, and passes the same clock to all calls.
//  2. After each call it sends Output.Messages and handles Output.Actions, in order.
//     Every method that takes an Output begins by emptying it.
//  3. It calls NextDeadline after each call, since each may move it.
//  4. One goroutine at a time uses a machine.
package token
