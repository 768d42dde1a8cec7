// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package watch has what those have in common that show a switch as it changes, the live page,
// gleam top and gleam group tree: rates between two of its answers, and which members matter.
package watch

import "github.com/gleam-rdma/gleam/api"

// Rank orders the members of a group by how much an operator wants to see them: the one that
// the group waits for, those with a fault, the source, the others.
func Rank(m *api.Member, g *api.Group) int {
	switch {
	case m.IP == g.WaitsFor:
		return 3
	case !m.Live || m.Diagnosis != "":
		return 2
	case m.Role == "source":
		return 1
	}
	return 0
}
