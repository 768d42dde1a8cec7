// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
)

// waitPorts waits until all ports are up at interfaces that were made anew n times.
func (p *process) waitPorts(t *testing.T, n uint64) {
	t.Helper()
	for end := time.Now().Add(testTimeout); ; time.Sleep(10 * time.Millisecond) {
		ports, err := p.client.Ports(t.Context())
		ready := err == nil
		for _, x := range ports {
			ready = ready && x.Up && x.State == api.PortOpen && x.Reopened == n && x.Queues == 1
		}
		if ready && p.xdp(t) == 2 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the ports are not taken up: %+v, %v\n%s", ports, err, p.Output())
		}
	}
}

// TestPortsMadeAnewWithoutPrivileges: a gleamd that has given up its privileges takes up
// all of its ports again, which were gone at once, so that nothing was left that the packet
// memory was registered with.
func TestPortsMadeAnewWithoutPrivileges(t *testing.T) {
	p := startProcess(t)
	for n := range uint64(2) {
		for _, port := range p.star.Ports {
			if err := p.star.Switch.DeleteLink(port); err != nil {
				t.Fatal(err)
			}
		}
		for end := time.Now().Add(testTimeout); ; time.Sleep(10 * time.Millisecond) {
			ports, err := p.client.Ports(t.Context())
			if err == nil && ports[0].State == "lost" && ports[1].State == "lost" {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("the loss of the ports is not noticed: %+v, %v\n%s", ports, err, p.Output())
			}
		}
		for i, port := range p.star.Ports {
			host := lab.End{NS: p.star.Hosts[i].NS, Name: fmt.Sprintf("new%d", n)}
			if err := lab.Veth(lab.End{NS: p.star.Switch, Name: port}, host, 0); err != nil {
				t.Fatal(err)
			}
		}
		p.waitPorts(t, n+1)
	}
}
