// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import "time"

// Ways of a group's data: the Way of a FastPath.
const (
	WayFast  = "fast"  // XDP programs replicate it
	WaySlow  = "slow"  // a worker does, now
	WayNever = "never" // a worker does, as long as the group and the configuration are as they are
)

// FastPath is the way that a group's data takes, and what XDP programs have replicated.
type FastPath struct {
	Way     string            `json:"way"`              // WayFast, WaySlow or WayNever
	Since   time.Time         `json:"since,omitzero"`   // the time when Way began
	Word    string            `json:"word,omitempty"`   // what keeps the way from being WayFast, in a word (docs/FAST-PATH.md)
	Reason  string            `json:"reason,omitempty"` // likewise in a sentence: the port, for example
	Remedy  string            `json:"remedy,omitempty"` // what helps
	Packets uint64            `json:"packets"`          // packets of Counters.DataIn that XDP replicated
	Copies  uint64            `json:"copies"`           // copies that XDP made of these packets
	Grants  uint64            `json:"grants"`           // times that the way became WayFast
	Revokes uint64            `json:"revokes"`          // times that it ended
	Ring    int               `json:"ring"`             // packets that XDP can store for repair
	ACKs    uint64            `json:"acks"`             // ACKs of receivers that XDP counted
	Answers uint64            `json:"answers"`          // ACKs that XDP sent to the source
	ACKsBy  string            `json:"acksBy,omitempty"` // the reason, in a word, why XDP leaves ACKs to the worker; empty: it counts them, or no data has come
	Left    map[string]uint64 `json:"left,omitempty"`   // packets that XDP left to the worker, by reason (docs/COUNTERS.md)
}

// PortFastPath is whether the fast path uses a port, and what became of its copies.
type PortFastPath struct {
	Used   bool   `json:"used"`
	Reason string `json:"reason,omitempty"` // the reason why the port is not used, with what helps
	Sent   uint64 `json:"sent"`             // copies and ACKs of XDP that the driver took
	Lost   uint64 `json:"lost"`             // copies and ACKs of XDP that the driver did not take
}
