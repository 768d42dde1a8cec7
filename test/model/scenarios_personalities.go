// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/mcast"
)

// Sets of hosts that behave as RNICs are documented to (docs/RC.md §11).
var (
	allConnectX = []Host{{rc.ConnectX, 0xFFFFFE, 0xFFFFFF}, {rc.ConnectX, 0xFFFFFF, 0xFFFFFE}, {rc.ConnectX, 0, 0xFFFFFD}, {rc.ConnectX, 0, 0}}
	allRepeat   = []Host{{rc.ConnectXRepeat, 0xFFFFFE, 0xFFFFFF}, {rc.ConnectXRepeat, 0xFFFFFF, 0xFFFFFE}, {rc.ConnectXRepeat, 0, 0xFFFFFD}, {rc.ConnectXRepeat, 0, 0}}
	repeatAgain = []Host{{rc.ConnectXRepeat, 0xFFFFFE, 0xFFFFFF}, {rc.ConnectXRepeat, 0xFFFFFF, 7}, {rc.ConnectXRepeat, 0, 0x7FFFFE}, {rc.ConnectXRepeat, 0, 0}} // their first answers are not ambiguous (R52)
	repeatMixed = []Host{{rc.ConnectXRepeat, 0xFFFFFF, 0}, {rc.IRDMA, 0x7FFFFF, 0x7FFFFE}, {rc.RXE, 5, 0xFFFFFF}, {rc.ConnectX, 0, 0}}
)

// TinyPersonalities are Tiny's scenarios of such hosts. Silence is judged after more than the
// longest wait before an early repetition, which no timeout of the queue pairs shortens.
func TinyPersonalities() []Config {
	return []Config{
		{Name: "connectx", Receivers: 2, SendWindow: 3, Messages: []int{2, 1}, Hosts: allConnectX, Bounds: Bounds{Lose: 1}},
		{Name: "repeat", Receivers: 2, SendWindow: 3, Messages: []int{3}, Hosts: allRepeat, Bounds: Bounds{Lose: 2}},
		{Name: "repeat-mixed", Receivers: 2, SendWindow: 3, Messages: []int{1, 2}, Hosts: repeatMixed, Bounds: Bounds{Lose: 1, Duplicate: 1}},
		{Name: "repeat-write", Receivers: 2, SendWindow: 3, Messages: []int{3}, Write: true, Hosts: allRepeat, Bounds: Bounds{Lose: 1, Reorder: 1}},
		{Name: "repeat-store", Receivers: 2, SendWindow: 3, Messages: []int{3}, Repair: 3, Hosts: allRepeat, Bounds: Bounds{Lose: 1}},
		{Name: "repeat-death", Receivers: 2, SendWindow: 3, Messages: []int{1, 1}, Policy: mcast.Evict, WithDeadAfter: true, HostsMayDie: true, Timeout: 100 * time.Millisecond, Hosts: repeatMixed, Bounds: Bounds{Lose: 1}},
		stored(Config{Name: "repeat-restart", Receivers: 1, SendWindow: 3, Messages: []int{3}, Hosts: repeatAgain, Bounds: Bounds{Lose: 1, Restart: 1}}),
	}
}
