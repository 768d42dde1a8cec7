// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
)

// A live group is replaced by hand only on purpose: a master's group stays, and the
// refusal names the master; a group that was registered by hand stays, too.
func TestLiveGroupIsNotReplaced(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}})
	r.joinByMaster(nil)
	master := r.hosts[0].ip.String()
	status := func() *api.Group {
		t.Helper()
		g, err := r.engine.Group(r.group)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	mine := r.registration()
	mine.Members = mine.Members[:2]
	refused := func(reg *api.Register, says ...string) {
		t.Helper()
		before := status()
		err := r.engine.Register(reg)
		var e *api.Error
		if !asError(err, &e) || e.Reason != api.ReasonGroupExists {
			t.Fatalf("got %v, want %s", err, api.ReasonGroupExists)
		}
		for _, s := range append(says, r.group.String(), "registered already", "--replace") {
			if !strings.Contains(e.Message, s) {
				t.Errorf("%q does not say %q", e.Message, s)
			}
		}
		if after := status(); after.Epoch != before.Epoch || after.Origin != before.Origin || len(after.Members) != len(before.Members) {
			t.Errorf("the group was %+v and is %+v", before, after)
		}
	}
	refused(mine, "by its master at "+master, fmt.Sprintf("epoch %d, with 3 members", status().Epoch), r.hosts[2].ip.String())
	refused(r.registration(), "by its master at "+master) // with the very same members

	mine.Replace = true
	if err := r.engine.Register(mine); err != nil {
		t.Fatal(err)
	}
	if g := status(); g.Origin != "api" || len(g.Members) != 2 {
		t.Errorf("after --replace: %+v", g)
	}
	mine.Replace = false
	if err := r.engine.Register(mine); err != nil {
		t.Errorf("the same once more: %v", err)
	}
	mine.Members[1].RQPSN++
	refused(mine, "by hand")
}
