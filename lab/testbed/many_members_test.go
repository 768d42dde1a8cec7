// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"bytes"
	"context"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/session"
	"github.com/gleam-rdma/gleam/lab/fabric"
	"github.com/gleam-rdma/gleam/test/labtest"
)

func resident(t *testing.T, g *Gleamd) int64 {
	t.Helper()
	n, err := g.Process.Resident()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// neighbourTable makes room in the kernel's neighbour table, which all namespaces share.
func neighbourTable(t *testing.T, entries int) {
	t.Helper()
	const file = "/proc/sys/net/ipv4/neigh/default/gc_thresh3"
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := strconv.Atoi(string(bytes.TrimSpace(was))); n >= entries {
		return
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(entries)), 0o644); err != nil {
		labtest.Unavailable(t, "no room for %d neighbours: %v", entries, err)
	}
	t.Cleanup(func() { os.WriteFile(file, was, 0o644) })
}

// TestManyMembers: 1,000 members behind four leaves are one group, registered by envelopes at
// five gleamds, and all of them get the bytes of one source. GLEAM_MEMBERS is another number.
func TestManyMembers(t *testing.T) {
	labtest.Part(t, "trees")
	labtest.Require(t)
	const leaves, perHost = 5, 15 // a software device has 16 addresses at most, one of them of IPv6
	count := 1000
	if s := os.Getenv("GLEAM_MEMBERS"); s != "" {
		var err error
		if count, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	perLeaf := count / leaves
	neighbourTable(t, 4*count+1024)
	f, err := BuildFabric(t.Context(), FabricConfig{
		Dir: t.TempDir(), Gleamd: gleamd(t), Fabric: fabric.Config{Topology: fabric.LeafSpine(leaves, 1, (perLeaf+perHost-1)/perHost)}, Members: count,
		More: "repair: {timeout: 1s}\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size, message, deadline = 128 << 10, 32 << 10, 2 * time.Minute
	before := make(map[string]int64)
	for name, g := range f.Gleamds {
		before[name] = resident(t, g)
	}
	var members []*treeMember
	free := make(map[*fabric.Switch]netip.Addr) // the next address of no host
	left := make(map[*fabric.Switch]int)        // members still to be made
	for _, h := range f.Hosts {
		free[h.Switch], left[h.Switch] = h.IPv4.Next(), perLeaf
	}
	for i, h := range f.Hosts {
		// Each address of a host is one of a member.
		ips := []netip.Addr{h.IPv4}
		for left[h.Switch]--; len(ips) < perHost && left[h.Switch] > 0; left[h.Switch]-- {
			ip := free[h.Switch]
			free[h.Switch] = ip.Next()
			if err := h.NS.AddAddr(fabric.HostInterface, netip.PrefixFrom(ip, 24)); err != nil {
				t.Fatal(err)
			}
			ips = append(ips, ip)
		}
		dev := openDevice(t, h, i)
		for _, ip := range ips {
			members = append(members, newMember(t, f, h, ip, dev, size, deadline))
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	group := fabric.GroupsIPv4.Addr().Next()
	begin := time.Now()
	groups, err := joinMembers(ctx, f, endpoint.MasterConfig{GroupIP: group, OtherNetwork: true}, members, deadline)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d members joined in %v, with the exchange between them, on %d cores", len(members), time.Since(begin).Round(time.Millisecond), runtime.NumCPU())
	for _, s := range f.Switches {
		asked := time.Now()
		g, err := f.Gleamds[s.Name].Client.Group(ctx, group)
		if err != nil || len(g.Members) != len(members) || g.Tree == nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		answered := time.Since(asked).Round(100 * time.Microsecond)
		after := resident(t, f.Gleamds[s.Name])
		t.Logf("%s: %d members, %d legs to switches, %.1f MB resident, %.1f MB more than without the group; described in %v", s.Name, len(g.Members), len(g.Tree.Legs), float64(after)/1e6, float64(after-before[s.Name])/1e6, answered)
	}
	source := members[0].mr
	for i := range source.Bytes() {
		source.Bytes()[i] = byte(i*7>>3 + 1)
	}
	begin = time.Now()
	for at := 0; at < size; at += message {
		if err := write(ctx, groups[0], source, at, message); err != nil {
			t.Fatalf("the WRITE at %d: %v", at, err)
		}
	}
	took := time.Since(begin)
	for _, m := range members {
		if !bytes.Equal(m.mr.Bytes(), source.Bytes()) {
			t.Errorf("%v has other bytes", m.ip)
		}
	}
	t.Logf("%d KiB to %d receivers, byte for byte, in %v", size>>10, len(members)-1, took.Round(time.Millisecond))
	for _, s := range f.Switches {
		st, err := f.Gleamds[s.Name].Client.Stats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: the longest iteration of the control loop was %.1f ms, of %d", s.Name, st.Control.LongestIteration*1e3, st.Control.Iterations)
	}
	begin = time.Now()
	if err := session.Leave(groups); err != nil {
		t.Error(err)
	}
	t.Logf("ended in %v", time.Since(begin).Round(time.Millisecond))
}
