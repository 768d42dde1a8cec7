// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package block is a replicated block device: a gateway, which NBD clients use, WRITEs each write once to a group
// of replicas.
//
// What the gateway WRITEs are entries of a ring that every replica has, one after the other and numbered; the
// immediate data names an entry's place. Replicas apply entries in that order to a file or to memory, and tell the
// gateway how far they are over a TCP connection, on which they also serve reads: a read waits for the last entry
// that was complete before it.
//
// # What is promised
//
// Written: every live replica has the write in its memory, and will apply it before it answers a read. With a
// quorum, that many replicas have. It survives the death of all of them but one (with quorum K, of K - 1), of the
// switch, and of the gateway.
//
// Flushed, by a flush or FUA: every current replica, or a quorum, has it on disk (fdatasync), with a note which
// replicas were current. It survives that all lose power.
//
// A replica that the switch removes, or that does not answer, is absent: the gateway remembers the blocks that it
// lacks, those included that it had not flushed. When it returns it joins the group again, gets all new writes,
// and meanwhile copies of those blocks. While a block is copied no write to it begins, so that a copy never
// replaces a newer write. A replica with another file, or an older one, gets all blocks.
//
// A gateway that starts takes the replicas with the highest entry for current, once all replicas have answered
// that were current beside them; the others get all blocks.
//
// # Limits
//
// There is one gateway: when it dies the device is gone until it is started again. A replica serves one gateway at
// a time. What a returning replica lacks is in the gateway's memory: after a restart of the gateway all blocks are
// copied to those that are behind. If the last current replica is lost with its memory or its power, the device
// fails until the gateway is started again, since acknowledged writes may be lost.
package block
