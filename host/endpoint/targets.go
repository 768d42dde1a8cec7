// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"fmt"

	"github.com/gleam-rdma/gleam/envelope"
)

// Target is the start of one member's memory for the next WRITEs.
type Target = envelope.TargetRecord

// AppendTargets appends to b the payload of a target message for the next WRITEs. It
// fails if the targets do not fit one message: split them over several, which count
// together.
func (g *Group) AppendTargets(b []byte, targets []Target) ([]byte, error) {
	if most := envelope.MaxTargets(g.info.PathMTU, g.info.IP.Is4()); len(targets) == 0 || len(targets) > most {
		return b, fmt.Errorf("a target message of group %s has 1 to %d targets, not %d", g.info.IP, most, len(targets))
	}
	return envelope.AppendTargets(b, targets), nil
}

// TargetMessageWR returns the work request of a target message whose payload, made by
// AppendTargets, is in segment. It completes like any WRITE; the WRITEs after it need not
// wait for that. MasterConfig.Targets must have been set.
func (g *Group) TargetMessageWR(id uint64, segment Segment) SendWR {
	return SendWR{ID: id, Op: Write, Local: segment, RemoteAddr: envelope.TargetMessageVA, RKey: g.info.TargetKey}
}

// TargetedWR returns the work request of a WRITE, or of a WriteImm with immediate data,
// to the offset in bytes from each member's target in the last target message before it.
func (g *Group) TargetedWR(id uint64, op WROp, segment Segment, offset uint64) SendWR {
	return SendWR{ID: id, Op: op, Local: segment, RemoteAddr: offset, RKey: g.info.TargetKey}
}
