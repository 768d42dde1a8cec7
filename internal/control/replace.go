// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
)

// maxNamed bounds the members that an error message names.
const maxNamed = 4

// replaceConflict returns an error if reg, a registration by hand, would end the live
// registration old, and nil if it would not. Ending it needs an explicit request: a
// transfer may be under way in it, and a mistyped address is a valid one.
func replaceConflict(old, reg *envelope.Registration) error {
	if reg.Base != 0 || !old.Master.IsValid() && sameGroup(*old, *reg) {
		return nil // an update, or the same registration
	}
	owner := "by hand"
	if old.Master.IsValid() {
		owner = fmt.Sprintf("by its master at %s", old.Master)
	}
	var names []string
	for i := range old.Members {
		if i == maxNamed {
			names = append(names, "…")
			break
		}
		names = append(names, old.Members[i].Key().String())
	}
	return &api.Error{Reason: api.ReasonGroupExists, Message: fmt.Sprintf(
		"group %s is registered already, %s, epoch %d, with %d members (%s), and stays as it is: delete it first, or replace it on purpose (--replace), which ends its transfers",
		old.Group, owner, old.Epoch, len(old.Members), strings.Join(names, ", "))}
}

// sameGroup reports whether a and b describe the same group: the same members, in the
// same order, and the same parameters, whatever their master, epochs and lease.
func sameGroup(a, b envelope.Registration) bool {
	for _, r := range []*envelope.Registration{&a, &b} {
		r.Epoch, r.Base, r.Lease, r.Master = 0, 0, 0, netip.AddrPort{}
		r.Origin, r.Numbers, r.Tree = 0, nil, nil // the registrar's
	}
	return reflect.DeepEqual(a, b) // a field that is added later counts
}
