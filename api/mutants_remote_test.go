// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import "github.com/gleam-rdma/gleam/test/mutation/mutant"

// Wrong ways to let clients in over TCP.
var _ = []mutant.Mutant{
	mutant.New("every certificate may change", "remote", mutant.In((*Access).role,
		`p.Name != "" && slices.Contains(a.Operators, p.Name)`,
		`p.Name != ""`)),
	mutant.New("handshakes have no bound", "remote", mutant.In(NewRemote,
		"begun: connlimit.New(maxHandshakes)",
		"begun: connlimit.New(maxHandshakes * 100)")),
	mutant.New("a handshake lasts as long as the client likes", "remote", mutant.In((*Remote).handshake,
		"c.SetDeadline(time.Now().Add(handshakeTimeout))",
		"c.SetDeadline(time.Now().Add(handshakeTimeout * 100))")),
	mutant.New("connections outlive their certificates' authority", "remote", mutant.In((*Remote).Set,
		"for c := range closing {\n\t\tc.Close()\n\t}",
		"_ = closing")),
	mutant.New("a certificate counts for ever once it is connected", "remote", mutant.In((*handler).enter,
		"!who.Until.IsZero() && time.Now().After(who.Until)",
		"who.Until.IsZero() && time.Now().After(who.Until)")),
	mutant.New("each refused connection is reported", "remote", mutant.In((*Remote).refuseLocked,
		"now.Sub(last) >= refusalInterval",
		"now.Sub(last) >= 0")),
}
