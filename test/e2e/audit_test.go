// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
)

// Log and events name the author of each change: a master and members by key and
// address, an operator by user and process.
func TestAuditNamesWhoChangedWhat(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}})
	groups := r.joinByMaster(nil)
	r.fill(0)
	for _, g := range slices.Backward(groups) { // members leave, the master deletes
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	r.engine.Audit(&api.Change{By: "uid 0 (root), pid 7", Action: "set port p1: rate 20mbit"})

	r.notes.Lock()
	log := strings.Join(r.notes.lines, "\n")
	r.notes.Unlock()
	es, err := r.engine.Events(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]string{}
	for i := range es.Events {
		by[es.Events[i].Kind] += es.Events[i].By + " " + es.Events[i].Reason + "\n"
	}
	who := fmt.Sprintf("key 1, %s:", r.hosts[0].ip)
	for kind, want := range map[string]string{api.EventRegistered: who, api.EventEnded: who, api.EventAudit: "uid 0 (root), pid 7 set port p1: rate 20mbit: ok"} {
		if !strings.Contains(by[kind], want) {
			t.Errorf("events %s: %q, want %q", kind, by[kind], want)
		}
	}
	for _, action := range []string{"register group", "delete group"} {
		found := false
		for line := range strings.Lines(log) {
			found = found || strings.Contains(line, "audit") && strings.Contains(line, who) && strings.Contains(line, action) && strings.Contains(line, r.group.String())
		}
		if !found {
			t.Errorf("no audit line of %s by %s:\n%s", action, who, log)
		}
	}
}
