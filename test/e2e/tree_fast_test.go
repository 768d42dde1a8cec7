// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab/fabric"
)

// fastPackets is the number of packets that XDP has replicated in each switch.
func (r *fabricRig) fastPackets() map[string]uint64 {
	n := make(map[string]uint64)
	for name, e := range r.engines {
		g, err := e.Group(r.fabricGroup(0))
		if err != nil {
			r.t.Fatal(err)
		}
		if g.FastPath == nil {
			r.t.Fatalf("%s says nothing of the fast path, which is on", name)
		}
		n[name] = g.FastPath.Packets
	}
	return n
}

// Every switch of a tree takes the fast path, for legs to members and to other switches, and
// for a source of its own and one behind another switch. All bytes are right.
func TestTreeOnTheFastPath(t *testing.T) {
	r := newFabricRig(t, fabric.Config{Topology: fabric.LeafSpine(3, 1, 2), Redirects: true}, "fast_path: auto\n", false)
	m := r.join(r.fabricGroup(0), treeMemory, r.hosts...)
	for _, from := range []int{0, 3} {
		before := r.fastPackets()
		for try := 0; ; try++ {
			m.mustSend(from, treeMessage)
			all := true
			for name, n := range r.fastPackets() {
				all = all && n-before[name] >= treePackets/2
			}
			if all {
				t.Logf("member %d: after %d transfers of %d packets: %v, before %v", from, try+1, treePackets, r.fastPackets(), before)
				break
			}
			if try == 20 {
				var ways []*api.FastPath
				for _, e := range r.engines {
					g, _ := e.Group(r.fabricGroup(0))
					ways = append(ways, g.FastPath)
				}
				t.Fatalf("member %d: XDP has replicated %v, before %v; %+v", from, r.fastPackets(), before, ways)
			}
		}
	}
	m.leave()
}

// TestTreeLosesOnTheFastPath: with 1 % loss on every link, all receivers get all bytes, and the
// switches take the fast path between the losses.
func TestTreeLosesOnTheFastPath(t *testing.T) {
	top := fabric.LeafSpine(3, 1, 2)
	for i := range top.Links {
		top.Links[i].Loss = 0.01
	}
	r := newFabricRig(t, fabric.Config{Topology: top, Redirects: true}, "fast_path: auto\n", true)
	m := r.join(r.fabricGroup(0), treeMemory, r.hosts...)
	for _, from := range []int{0, 5} {
		m.mustSend(from, treeMessage)
	}
	t.Logf("replicated by XDP, of %d packets sent once: %v", 2*treePackets, r.fastPackets())
	sum := uint64(0)
	for _, n := range r.fastPackets() {
		sum += n
	}
	if sum == 0 {
		t.Error("no switch has ever taken the fast path")
	}
	m.leave()
}
