// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// TestTree: a group whose members are behind several leaves is registered by envelopes at
// all switches of its tree, all members get the data, and nothing is left when it is
// deleted.
func TestTree(t *testing.T) {
	labtest.Require(t)
	for name, c := range map[string]struct {
		topology *fabric.Topology
		switches int // switches of the tree
	}{
		"two switches": {chain(), 2},
		"leaf-spine":   {fabric.LeafSpine(4, 2, 2), 5},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := BuildFabric(t.Context(), FabricConfig{Dir: t.TempDir(), Gleamd: gleamd(t), FastPath: labtest.FastPath(), Fabric: fabric.Config{Topology: c.topology, Count: true}})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, group := range []netip.Addr{fabric.GroupsIPv4.Addr().Next(), fabric.GroupsIPv6.Addr().Next()} {
				transferInTree(t, f, group, c.switches)
			}
		})
	}
}

// chain is two switches with two hosts each.
func chain() *fabric.Topology {
	return &fabric.Topology{
		Switches: []string{"l1", "l2"}, Hosts: []string{"h1", "h2", "h3", "h4"},
		Links: []fabric.Link{{A: "l1", B: "l2"}, {A: "h1", B: "l1"}, {A: "h2", B: "l1"}, {A: "h3", B: "l2"}, {A: "h4", B: "l2"}},
	}
}

func transferInTree(t *testing.T, f *Fabric, group netip.Addr, switches int) {
	t.Helper()
	const size = 1 << 20
	groups, memories := join(t, f, len(f.Hosts), group, size)
	if n := serving(t, f, group); n != switches {
		t.Errorf("group %s: %d switches serve it, want %d", group, n, switches)
	}
	source := memories[0]
	for i := range source.Bytes() {
		source.Bytes()[i] = byte(i * 7 >> 3)
	}
	sendAll(t, groups[0], source)
	for i, mr := range memories {
		if !bytes.Equal(mr.Bytes(), source.Bytes()) {
			t.Errorf("group %s: host %s has other bytes", group, f.Hosts[i].Name)
		}
	}
	if err := session.Leave(groups); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(10 * time.Second); serving(t, f, group) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("group %s: %d switches have it after its end", group, serving(t, f, group))
		}
	}
}

// serving returns the number of switches that have the group.
func serving(t *testing.T, f *Fabric, group netip.Addr) (n int) {
	t.Helper()
	for name, g := range f.Gleamds {
		list, err := g.Client.Groups(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range list {
			if list[i].IP == group {
				n++
			}
		}
	}
	return n
}
