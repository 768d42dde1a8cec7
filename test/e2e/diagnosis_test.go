// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// A group that was registered by hand with a wrong number: the sender's retries end in
// status 12, and the switch names the number.
func TestWrongRegistrationIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*api.Register)
		says   string
	}{
		"sq-psn too high": {func(g *api.Register) { g.Members[0].SQPSN = (g.Members[0].SQPSN + 100) & rocev2.PSNMask }, "wrong sq-psn"},
		"sq-psn too low":  {func(g *api.Register) { g.Members[0].SQPSN = (g.Members[0].SQPSN - 100) & rocev2.PSNMask }, "wrong sq-psn"},
		"virtual QPN":     {func(g *api.Register) { g.QPN++ }, "wrong_qpn"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}})
			r.connect()
			reg := r.registration()
			c.change(reg)
			if err := r.engine.Register(reg); err != nil {
				t.Fatal(err)
			}
			r.post(0, 30_000)
			source := r.hosts[0].ip
			until(t, "the group's state names the number", func() bool {
				g, err := r.engine.Group(r.group)
				return err == nil && slices.ContainsFunc(g.Members, func(m api.Member) bool {
					return m.IP == source && strings.Contains(m.Diagnosis, c.says)
				})
			})
			until(t, "an event names the number", func() bool {
				es, err := r.engine.Events(canceled(), 0)
				return err == nil && slices.ContainsFunc(es.Events, func(e api.Event) bool {
					return e.Kind == api.EventMismatch && e.Group == r.group && e.Member == source && strings.Contains(e.Reason, c.says)
				})
			})
		})
	}
}
