// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// leafSpine is a fabric of that many leaves, spines, and hosts of each leaf, whose gleamds keep
// their groups.
func leafSpine(t *testing.T, leaves, spines, hosts int) *Fabric {
	t.Helper()
	f, err := BuildFabric(t.Context(), FabricConfig{Dir: t.TempDir(), Gleamd: gleamd(t), FastPath: labtest.FastPath(), State: true, Fabric: fabric.Config{Topology: fabric.LeafSpine(leaves, spines, hosts)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// join makes a group of the first n hosts, by envelopes, with a WRITE window of the memory
// of each.
func join(t *testing.T, f *Fabric, n int, group netip.Addr, memory int) (groups []*endpoint.Group, memories []endpoint.MR) {
	t.Helper()
	hosts := openHosts(t, f, n, Endpoints{IPv6: group.Is6(), Memory: memory})
	for _, h := range hosts {
		memories = append(memories, h.Memory)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	groups, err := Join(ctx, endpoint.MasterConfig{GroupIP: group, PathMTU: 1024, WindowBase: windowBase}, hosts)
	if err != nil {
		t.Fatal(err)
	}
	return groups, memories
}

const windowBase = 0x5000_0000_0000

// openHosts opens the first n hosts of a fabric until the test ends.
func openHosts(t *testing.T, f *Fabric, n int, c Endpoints) []*Host {
	t.Helper()
	c.Key = f.Key
	hosts, err := OpenAll(fabric.Plain(f.Hosts[:n]), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = CloseAll(hosts) })
	return hosts
}

// sendAll sends a member's memory as one message.
func sendAll(t *testing.T, g *endpoint.Group, mr endpoint.MR) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := Writes(mr, mr.Len()).SendToGroup(ctx, g, mr, 1, nil); err != nil {
		t.Fatal(err)
	}
}

// TestFabric: a group whose members are all behind one leaf is served by its gleamd, although
// the hosts' way to the group's address is their gateway, the leaf's bridge. The links to the
// spines have none of its packets.
func TestFabric(t *testing.T) {
	labtest.Require(t)
	dir := t.TempDir()
	const size, hosts = 1 << 20, 3
	f, err := BuildFabric(t.Context(), FabricConfig{
		Dir: dir, Gleamd: gleamd(t), FastPath: labtest.FastPath(), Fabric: fabric.Config{Topology: fabric.LeafSpine(2, 2, hosts), Count: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	defer func() {
		if !closed {
			f.Close()
		}
	}()
	for _, group := range []netip.Addr{fabric.GroupsIPv4.Addr().Next(), fabric.GroupsIPv6.Addr().Next()} {
		transferAtOneLeaf(t, f, group, size, hosts)
	}
	if err := f.Gleamds["s1"].Restart(t.Context()); err != nil {
		t.Error(err)
	}
	if err := f.Isolate("s2"); err != nil {
		t.Error(err)
	}
	if err := f.Isolate("s3"); err == nil {
		t.Error("a switch that is not there has failed")
	}
	closed = true
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for name, g := range f.Gleamds {
		select {
		case <-g.Process.Done():
		default:
			t.Errorf("gleamd of %s still runs", name)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

func transferAtOneLeaf(t *testing.T, f *Fabric, group netip.Addr, size, hosts int) {
	t.Helper()
	groups, memories := join(t, f, hosts, group, size)
	defer func() {
		if err := session.Leave(groups); err != nil {
			t.Error(err)
		}
	}()
	source := memories[0]
	for i := range source.Bytes() {
		source.Bytes()[i] = byte(i * 7 >> 3)
	}
	traffic := func(a, b string) fabric.Traffic {
		t.Helper()
		x, err := f.Traffic(a, b)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	before := traffic("h1", "l1")
	sendAll(t, groups[0], source)
	for i, mr := range memories[1:] {
		if string(mr.Bytes()) != string(source.Bytes()) {
			t.Errorf("%s does not have the bytes of h1", f.Hosts[i+1].Name)
		}
	}
	sent := traffic("h1", "l1").Sub(before)
	if packets := uint64(size / 1024); sent.GroupData.Frames < packets || sent.Envelopes.Frames > 10 {
		t.Errorf("h1 sent %+v, want %d packets", sent, packets)
	}
	for _, s := range []string{"s1", "s2"} {
		for _, x := range []fabric.Traffic{traffic("l1", s), traffic(s, "l1"), traffic("l2", s), traffic(s, "l2")} {
			if x.GroupData.Frames+x.GroupFeedback.Frames+x.Envelopes.Frames > 0 {
				t.Errorf("packets of groups on the links of %s: %+v", s, x)
			}
		}
	}
}
