// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"testing"

	"github.com/gleam-rdma/gleam/config"
)

// Each change of a port by the control plane reaches every worker's view of the port.
func TestEveryWorkerHearsOfPorts(t *testing.T) {
	cfg, err := config.Parse("ports", []byte("group_prefixes: [10.77.254.0/24]\nenvelope: {insecure: true}\numem: {frames: 1024}\nworker: {cpu: [-1, -1, -1]}\nports:\n  - {name: f0}\n  - {name: f1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Unattached(cfg, 1500, func(bool, string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.PresetIsolated(0, true)
	if err := p.Run(func() {
		if err := p.SetMTU(1, 900); err != nil {
			t.Error(err)
		}
		p.SetIsolated(1, true)
		if at, err := p.SetUp(1, true); at != Gone || err != nil {
			t.Errorf("a port without an interface: %v, %v", at, err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for _, w := range p.workers.all {
		zero, one := w.ports[0], w.ports[1]
		if zero.mtu != 1500 || one.mtu != 900 || !zero.isolated || !one.isolated || !one.down {
			t.Errorf("worker %d has ports of MTU %d and %d, isolated %v and %v, down %v", w.index, zero.mtu, one.mtu, zero.isolated, one.isolated, one.down)
		}
	}
	if err := p.SetMTU(1, 1000); err == nil {
		t.Error("a data plane that has ended takes an MTU")
	}
}
