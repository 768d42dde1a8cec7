// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package verbs is an [endpoint.Device] on libibverbs: the queue pairs of an
// RNIC, or of the kernel's soft-RoCE (rdma_rxe).
//
// It needs cgo and the build tag verbs, and the headers of libibverbs (Debian:
// libibverbs-dev); a program built so links to libibverbs.so.1. Without the tag
// the package is pure Go and [Open] fails with [ErrNotBuilt], so that programs
// may offer the backend whatever they were built with; [Built] tells.
//
// A queue pair is in state INIT when it has been made. Connect takes it to RTR,
// where the kernel resolves the peer's address, and to RTS. Both its queues
// share one completion queue. Poll looks there first, and if there is nothing
// asks for an event and sleeps in Go's network poller: it does not spin.
//
// The device writes to registered memory behind Go's back. Slices of the Go
// heap are pinned while they are registered. What peers may write to had better
// come from [Alloc]: peers' addresses must lie at the same offset within a page
// as the buffer, and buffers of Alloc begin where a page begins.
//
// Asynchronous events of the device (ibv_get_async_event) are not read: what
// goes wrong with a queue pair shows in its completions.
package verbs
