// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package soft

import "sync/atomic"

// ioSync tells the race detector the order that the network imposes: the receiver of a
// packet is ordered after its sender. Packages net and syscall do the same. Without it, a
// receiver that reads its memory after the sender's completion would be reported when
// both devices are in one process.
var ioSync atomic.Int64

func acquire() { ioSync.Load() }
func release() { ioSync.Add(1) }
