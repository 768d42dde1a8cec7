// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !record

package dataplane

import "github.com/gleam-rdma/gleam/mcast"

// core is the core of a worker.
type core = mcast.Switch

func newCore(l mcast.Limits) *core { return mcast.New(l) }
