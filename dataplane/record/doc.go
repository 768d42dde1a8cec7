// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package record has what goes into the core of a running switch, and judges what came out.
//
// A gleamd or a test that is built with the tag record, and has the name of a folder in
// GLEAM_RECORD, writes a recording for each worker: every call that may change the worker's
// mcast.Switch, with all that the core was told, in order, and a digest of what it answered, up to
// MaxBytes. Without the tag nothing of this package is in the program. A recording has the R_Keys
// of members.
//
// The tests play recordings to a fresh mcast.Switch. Each digest has to be the same: the core is
// pure, so the driver has no part in what it did. A judge keeps account of what members have sent
// and acknowledged, from the calls alone, and holds the output to it:
//
//   - An ACK to the source, or what a NAK acknowledges, is had by every live receiver, under
//     Quorum by a quorum. What the source has been acknowledged is not taken back.
//   - A copy is of a packet that the source has sent, goes to a live member other than the
//     source, with the PSN that the member expects it by, and with the member's own memory.
//   - A turn begins at the next PSN of its source, when all that was sent before is had by all.
//
// The judge asks for no packet that is missing, and believes acknowledgements that the switch need
// not believe. In a tree of switches it takes the beginning of a turn from the core, and in the
// turn that goes on after a restart, or after another layout, it knows no end of what was sent.
// Copies of the fast path are not in a recording. Its ACKs are held to the report that follows them.
package record
