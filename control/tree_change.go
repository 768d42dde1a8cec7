// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import "github.com/gleam-rdma/gleam/envelope"

// notYet returns why the switch cannot serve r: the tree of a group that runs does not
// change under it.
func (d *directory) notYet(r *envelope.Registration) *envelope.Problem {
	g := d.groups[r.Group]
	if r.Tree != nil && (r.Base != 0 || r.Tree.Elsewhere) || r.Base != 0 && g != nil && g.remote != nil {
		return &envelope.Problem{Reason: envelope.NotInTrees, Value: uint64(envelope.LimitUpdate)}
	}
	return nil
}
