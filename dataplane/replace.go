// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
)

// maxNamed bounds the members that a refusal names.
const maxNamed = 4

// replaceConflict says why reg, which somebody wants by hand, must not end old, which
// lives, without being told to; nil if it does not end it. A transfer of others
// may be under way, and a mistyped address looks like any other.
func replaceConflict(old, reg *envelope.Registration) error {
	if reg.Base != 0 || !old.Master.IsValid() && sameGroup(*old, *reg) {
		return nil // an update, or nothing new
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
		"group %s is %s, %s, epoch %d, with %d members (%s), and stays as it is: delete it first, or replace it on purpose (--replace), which ends its transfers",
		old.Group, api.ReasonGroupExists, owner, old.Epoch, len(old.Members), strings.Join(names, ", "))}
}

// sameGroup says whether a and b make the same group: the same members, in the same
// order, and the same parameters, whoever registered them, when, and for how long.
func sameGroup(a, b envelope.Registration) bool {
	for _, r := range []*envelope.Registration{&a, &b} {
		r.Epoch, r.Base, r.Lease, r.Master = 0, 0, 0, netip.AddrPort{}
	}
	return reflect.DeepEqual(a, b) // a field that is added later counts
}
