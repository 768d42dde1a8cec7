// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/host/rc/dcqcn"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Types of packages that other modules cannot import.
type (
	Personality = rc.Personality // which queue pairs a device behaves like
	Congestion  = dcqcn.Config   // parameters of DCQCN
	MAC         = rocev2.MAC     // Ethernet address
)

// Personalities.
const (
	RXE    = rc.RXE    // Linux soft-RoCE
	Strict = rc.Strict // hardware that checks all that IBTA has a queue pair check
)
