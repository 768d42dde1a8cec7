// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab"
)

const smallFrames = "umem: {frames: 8192, frame_size: 2048}\nrings: {rx: 512, tx: 512, fill: 512, completion: 512}\n"

// Packets that are longer than a frame of the UMEM: all bytes arrive, with one
// completion for each message, and lost packets are repaired by the switch.
func TestPacketsInSeveralBuffers(t *testing.T) {
	jumbo := lab.StarConfig{Hosts: 4, MTU: 4200}
	losing := func(_ int, c *soft.Config) { c.Loss = 0.01 }
	for name, c := range map[string]rigConfig{
		"path MTU 4096":                            {star: jumbo, pathMTU: 4096},
		"path MTU 4096, IPv6":                      {star: jumbo, pathMTU: 4096, v6: true},
		"path MTU 4096, 2 KiB frames":              {star: jumbo, pathMTU: 4096, rings: smallFrames},
		"path MTU 4096, MTU 9000":                  {star: lab.StarConfig{Hosts: 4, MTU: 9000}, pathMTU: 4096, rings: smallFrames},
		"path MTU 2048, 2 KiB frames":              {star: lab.StarConfig{Hosts: 4, MTU: 2200}, pathMTU: 2048, rings: smallFrames},
		"path MTU 1024, 2 KiB frames":              {star: lab.StarConfig{Hosts: 4}, rings: smallFrames},
		"path MTU 4096, generic XDP":               {star: jumbo, pathMTU: 4096, config: "xdp: {mode: generic}\n"},
		"path MTU 4096, 2 KiB frames, 3 workers":   {star: jumbo, pathMTU: 4096, rings: smallFrames, workers: 3},
		"path MTU 4096, loss":                      {star: jumbo, pathMTU: 4096, device: losing},
		"path MTU 4096, 2 KiB frames, loss":        {star: jumbo, pathMTU: 4096, device: losing, rings: smallFrames},
		"path MTU 4096, loss, repaired by senders": {star: jumbo, pathMTU: 4096, device: losing, alone: true},
		"path MTU 4096, two ports with a rate": {
			star: jumbo, pathMTU: 4096, ports: map[string]string{"p2": "rate: 200mbit", "p3": "rate: 300mbit\n    queue: 65536"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.memory = 2 << 20
			r := newRig(t, c)
			r.join()
			r.fill(0)
			r.write(0, 100_000)
			r.same(0)
			r.sends(0, 5000, 37)
			s := r.stats()
			packets := uint64((r.hosts[0].mr.Len() + r.c.pathMTU - 1) / r.c.pathMTU)
			if s.Rx < packets || s.Copies < 3*packets {
				t.Errorf("%d packets in, %d copies out, want at least %d and %d", s.Rx, s.Copies, packets, 3*packets)
			}
			if c.device == nil && c.ports == nil && s.Rx > packets+600 { // 37 SENDs, and feedback
				t.Errorf("%d packets in, of %d packets with data: buffers seem to be counted", s.Rx, packets)
			}
			g, err := r.engine.Group(r.group)
			if err != nil {
				t.Fatal(err)
			}
			if repaired := g.Repair != nil && g.Repair.Copies > 0; c.device != nil && repaired == c.alone {
				t.Errorf("repair by the switch: %+v", g.Repair)
			}
			for _, drop := range []string{"frame_too_long", "bad_icrc", "umem_exhausted", "queue_full"} {
				if s.Drops[drop] != 0 && (r.workers() == 1 || drop != "queue_full") { // the worker that hands over may be faster than the one that transmits
					t.Errorf("%d packets dropped for %s", s.Drops[drop], drop)
				}
			}
		})
	}
}

// sends sends n messages from the beginning of host from's region to where all
// others have posted receives, and compares them.
func (r *rig) sends(from, size, n int) {
	r.t.Helper()
	for i, h := range r.hosts {
		if i == from {
			continue
		}
		clear(h.mr.Bytes()[:size])
		for k := range n {
			if _, err := h.qp.PostRecv(endpoint.RecvWR{ID: uint64(k), Local: endpoint.Segment{MR: h.mr, Len: size}}); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	src := r.hosts[from]
	for k := range n {
		if _, err := src.qp.PostSend(endpoint.SendWR{ID: uint64(k), Op: endpoint.Send, Local: endpoint.Segment{MR: src.mr, Len: size}}); err != nil {
			r.t.Fatal(err)
		}
	}
	r.complete(src, n)
	for i, h := range r.hosts {
		if i == from {
			continue
		}
		r.complete(h, n)
		if !bytes.Equal(h.mr.Bytes()[:size], src.mr.Bytes()[:size]) {
			r.t.Errorf("%s did not receive the bytes of %s", h.Name, src.Name)
		}
	}
}

// Where one port's MTU is smaller, groups with members there have a smaller path MTU,
// and others do not: a path MTU that does not fit is rejected with the one that does.
func TestPortsOfDifferentMTUs(t *testing.T) {
	for frames, rings := range map[int]string{4096: "", 2048: smallFrames} {
		t.Run(fmt.Sprint("frames of ", frames), func(t *testing.T) {
			r := newRig(t, rigConfig{
				star: lab.StarConfig{Hosts: 5, MTU: 4200, MTUs: map[int]int{4: 2200, 5: 1500}}, rings: rings,
			})
			all := r.registration()
			for _, c := range []struct {
				members      []int
				most, reject int
			}{
				{[]int{0, 1, 2}, 4096, 0},
				{[]int{0, 1, 3}, 2048, 4096},
				{[]int{3, 1, 0}, 2048, 4096},
				{[]int{0, 1, 2, 3, 4}, 1024, 2048},
				{[]int{4, 0}, 1024, 4096},
			} {
				g := *all
				g.Members = nil
				for _, i := range c.members {
					g.Members = append(g.Members, all.Members[i])
				}
				if g.PMTU = c.reject; g.PMTU > 0 {
					err := r.engine.Register(&g)
					var e *api.Error
					if !asError(err, &e) || e.Reason != "path MTU mismatch" || !strings.Contains(e.Message, fmt.Sprint(c.most)) {
						t.Errorf("members %v with path MTU %d: %v; want the reason, and %d", c.members, c.reject, err, c.most)
					}
				}
				g.PMTU = c.most
				if err := r.engine.Register(&g); err != nil {
					t.Errorf("members %v with path MTU %d: %v", c.members, c.most, err)
				} else if err := r.engine.Delete(r.group); err != nil {
					t.Error(err)
				}
			}
			// Both at once, with traffic.
			long := r.another(group4, 0, 1, 2)
			long.c.pathMTU = 4096
			short := r.another(netip.MustParseAddr("10.77.254.9"), 1, 3, 4, 0)
			for _, o := range []*rig{long, short} {
				o.join()
				o.fill(0)
				o.write(0, 50_000)
				o.same(0)
				o.sends(0, 5000, 3)
			}
			if n := r.stats().Drops["frame_too_long"]; n != 0 {
				t.Errorf("%d packets are said to be too long", n)
			}
		})
	}
}
