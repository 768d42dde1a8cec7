// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"net/netip"

	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// pinMutants bring back what let a stranger move a member.
var _ = []mutant.Mutant{
	mutant.New("a Here under another key counts", "Where", mutant.In((*Registrar).here,
		"h.Member != m.ReplyTo.Addr() || m.KeyID != r.keyOf(g)",
		"h.Member != m.ReplyTo.Addr() || false && m.KeyID != r.keyOf(g)")),
	mutant.New("a host answers for another one's address", "Where", mutant.In((*Member).handleWhere,
		"if w.Member != m.cfg.Local.Addr() {",
		"if w.Member == m.cfg.Local.Addr().$1() {", netip.Addr.Next)),
}
