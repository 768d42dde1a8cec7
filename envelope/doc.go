// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package envelope is Gleam's registration protocol: how a master registers the
// members of a group with the switch, how the members confirm the registration,
// and how the group ends (after the Gleam paper, appendix A).
//
// It holds a wire format (docs/PROTOCOL.md draws every byte) and three state
// machines without sockets, clocks or goroutines:
//
//	Master ── Register, Renew, Leave, Delete ──► Registrar (in the switch)
//	   ▲  ◄── Accept, Reject, Challenge, Gone ──    │
//	   │                                            │ Notify, Gone
//	   └────────────── Confirm ─────────────── Member ◄┘
//
// A registrar registers a group whose members are at several switches with those of its
// neighbours: InputFromSwitch, SetNeighbour and Output.Relays are for these (docs/TREES.md).
//
// The driver of a machine follows four rules:
//
//  1. It calls Input with every UDP payload that arrived at the protocol's
//     port, Advance whenever the time of NextDeadline has come, and passes
//     the same clock to all calls: a Duration since an instant of its choice
//     that never goes back.
//  2. After each call it sends Output.Packets and handles Output.Events, in
//     order. Every method that takes an Output begins by emptying it; the
//     packets' bytes belong to the driver.
//  3. It calls NextDeadline after each call, since each may move it.
//  4. One goroutine at a time uses a machine.
//
// Packets of a master and of a member go to the GroupIP, where the switch
// intercepts them; packets of the switch come from the GroupIP.
package envelope
