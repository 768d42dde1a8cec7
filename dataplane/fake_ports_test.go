// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"fmt"
	"net"
	"testing"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane/xsk"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/xsktest"
)

// fakeStar is a star of hosts around the workers of a switch, without a kernel: host i,
// 10.77.0.i+1, is behind port i, whose queues the test plays. No goroutine runs the
// workers: the test calls runBatch, or the function under test.
type fakeStar struct {
	*workers
	umem   *xsk.Umem
	hosts  []lab.Host
	queues [][]*xsktest.Queue // queues by port
}

// fakeConfig is the configuration of a switch with ports p1, p2, … and what more says;
// p2 is more of port p2, if it is not empty.
func fakeConfig(t testing.TB, hosts int, more, p2 string) *config.Config {
	t.Helper()
	text := "group_prefixes: [10.77.254.0/24]\nenvelope: {insecure: true}\nrings: {rx: 512, tx: 512, fill: 512, completion: 512}\n" + more + "ports:\n"
	for i := range hosts {
		text += fmt.Sprintf("  - name: p%d\n", i+1)
		if i == 1 && p2 != "" {
			text += "    " + p2 + "\n"
		}
	}
	cfg, err := config.Parse("fake", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// newFakeStar makes a star with the hosts, queues and MTU of c and the workers of cfg.
func newFakeStar(t testing.TB, c lab.StarConfig, cfg *config.Config) *fakeStar {
	t.Helper()
	mtu := c.MTU
	if mtu == 0 {
		mtu = 1500
	}
	umem, err := xsk.NewUmem(cfg.UMEM.Frames, cfg.UMEM.FrameSize)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := umem.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &fakeStar{umem: umem}
	var ports []*port
	for i := range cfg.Ports {
		p := &port{
			portIdentity: portIdentity{name: cfg.Ports[i].Name, ifindex: i + 1, mac: rocev2.MAC{2, 0, 0, 0, 2, byte(i + 1)}},
			linkState:    linkState{mtu: mtu},
		}
		p.multiBuffer = mtu+rocev2.EthernetLen+2*rocev2.VLANLen > umem.MaxReceive()
		var queues []*xsktest.Queue
		for n := range max(1, c.Queues) {
			q := xsktest.New(umem, xsktest.Config{Number: n, Ring: cfg.Rings.TX, MultiBuffer: p.multiBuffer})
			queues = append(queues, q)
			p.sockets = append(p.sockets, q)
		}
		p.prepare(&cfg.Ports[i], cfg)
		s.queues = append(s.queues, queues)
		ports = append(ports, p)
		s.hosts = append(s.hosts, lab.Host{
			Name: fmt.Sprintf("h%d", i+1), Port: p.name, MAC: net.HardwareAddr{2, 0, 0, 0, 1, byte(i + 1)}, IPv4: fakeHost(i),
		})
	}
	if s.workers, err = newWorkers(ports, umem, cfg, fakePoller); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.workers.close() })
	return s
}

// fakePoller is the newPoller of fake ports.
func fakePoller(queues []xsk.BoundQueue) (xsk.Poller, error) {
	var fakes []*xsktest.Queue
	for _, q := range queues {
		fakes = append(fakes, q.(*xsktest.Queue))
	}
	return xsktest.NewPoller(fakes...), nil
}

// free returns how many frames are in the pools and the depot.
func (c *workers) free() (n int) {
	if c.depot != nil {
		n = c.depot.Len()
	}
	for _, w := range c.all {
		n += w.pool.Len()
	}
	return n
}
