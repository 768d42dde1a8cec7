// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"net/netip"
)

// Attempt names the attempt by which a group over several switches was registered, for
// operators: the switches of its tree have the same one. false: there is no such group here.
func (r *Registrar) Attempt(ip netip.Addr) (name string, ok bool) {
	g := r.groups[ip]
	if g == nil || g.branch == nil {
		return "", false
	}
	return fmt.Sprintf("%016x-%x", uint64(g.branch.id.root), g.branch.id.number), true
}
