// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/dataplane/ntuple"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/lab"
)

// A group's rules name, at each port, a queue that its worker receives from, and are
// taken back with it. A port that has no room for one is said and goes without; where
// the driver has no rules at all, as a veth, that is said at the start.
func TestGroupsAreSteeredToTheirWorker(t *testing.T) {
	var said []string
	notify := func(_ bool, msg string, _ ...any) { said = append(said, msg) }
	p := newPairOn(t, lab.StarConfig{Hosts: 3, Queues: 2}, "", "xdp: {ntuple: true}\n", notify)
	for _, port := range p.crew.ports {
		if port.nicRules != nil {
			t.Errorf("%s has rules", port.name)
		}
	}
	count := func(what string) (n int) {
		for _, s := range said {
			if strings.Contains(s, what) {
				n++
			}
		}
		return n
	}
	if n := count("groups are not steered"); n != 3 {
		t.Errorf("said %d times that a port has no rules, want 3: %q", n, said)
	}

	// What ntuple asks of these drivers: queue by location, of each port.
	rules := make([]map[uint32]uint64, 3)
	e := binary.NativeEndian
	for i, port := range p.crew.ports[:3] {
		rules[i] = make(map[uint32]uint64)
		port.nicRules = ntuple.New(port.name, func(b []byte) error {
			switch e.Uint32(b) {
			case 0x2e: // ETHTOOL_GRXCLSRLCNT: a table whose driver finds places
				e.PutUint64(b[8:], 1<<31|16)
			case 0x32: // ETHTOOL_SRXCLSRLINS
				if i == 2 {
					return unix.ENOSPC
				}
				e.PutUint32(b[176:], uint32(len(rules[i])))
				rules[i][e.Uint32(b[176:])] = e.Uint64(b[168:])
			case 0x31: // ETHTOOL_SRXCLSRLDEL
				delete(rules[i], e.Uint32(b[176:]))
			}
			return nil
		})
	}
	plane := &Plane{ports: p.crew.ports, workers: p.crew, notify: notify}
	for _, w := range p.crew.all {
		g := &Group{plane: plane, ip: p.group, worker: w}
		g.addNICRules()
		for i := range 2 {
			queue, ok := rules[i][0]
			if !ok || !slices.ContainsFunc(w.ports[i].rxSockets, func(s xsk.BoundQueue) bool { return s.Number() == int(queue) }) {
				t.Errorf("port %d: worker %d does not receive from queue %d (%v)", i, w.index, queue, ok)
			}
		}
		g.removeNICRules()
		if len(rules[0])+len(rules[1]) != 0 {
			t.Errorf("rules are left: %v", rules)
		}
	}
	if n := count("a group is not steered"); n != 2 {
		t.Errorf("said %d times that there was no room for a rule, want 2: %q", n, said)
	}

	// What is left at the end is taken back as the port is closed.
	(&Group{plane: plane, ip: p.group, worker: p.crew.all[0]}).addNICRules()
	for _, port := range p.crew.ports[:3] {
		if err := port.nicRules.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(rules[0])+len(rules[1]) != 0 {
		t.Errorf("rules are left: %v", rules)
	}
}
