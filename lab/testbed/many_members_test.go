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
	"github.com/gleam-rdma/gleam/lab"
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

// alias is a member at another address of a host.
func alias(t *testing.T, h *Host, ip netip.Addr, memory int) *Host {
	t.Helper()
	x := *h
	err := x.Register(make([]byte, memory), memoryBase)
	if x.IP = ip; err == nil {
		x.Envelopes, err = lab.In(h.NS, func() (*endpoint.Host, error) { return endpoint.NewHost(ip, h.config) })
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Envelopes.Close() })
	return &x
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

// TestManyMembers: 1,000 members behind five leaves are one group, registered by envelopes at
// six gleamds, and all of them get the bytes of one source. GLEAM_MEMBERS is another number.
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
	var members []*Host
	free := make(map[*fabric.Switch]netip.Addr) // the next address of no host
	left := make(map[*fabric.Switch]int)        // members still to be made
	for _, h := range f.Hosts {
		free[h.Switch], left[h.Switch] = h.IPv4.Next(), perLeaf
	}
	for i, h := range openHosts(t, f, len(f.Hosts), Endpoints{Memory: size, Deadline: deadline, Answer: true}) {
		// Each address of a host is one of a member.
		at := f.Hosts[i].Switch
		members = append(members, h)
		n := 1
		for left[at]--; n < perHost && left[at] > 0; left[at]-- {
			n++
			ip := free[at]
			free[at] = ip.Next()
			if err := h.NS.AddAddr(fabric.HostInterface, netip.PrefixFrom(ip, 24)); err != nil {
				t.Fatal(err)
			}
			members = append(members, alias(t, h, ip, size))
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	group := fabric.GroupsIPv4.Addr().Next()
	begin := time.Now()
	groups, err := Join(ctx, endpoint.MasterConfig{GroupIP: group, OtherNetwork: true, PathMTU: 1024, WindowBase: windowBase}, members)
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
	source := members[0].Memory
	for i := range source.Bytes() {
		source.Bytes()[i] = byte(i*7>>3 + 1)
	}
	begin = time.Now()
	if err := Writes(source, message).SendToGroup(ctx, groups[0], source, 1, nil); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	for _, m := range members {
		if !bytes.Equal(m.Memory.Bytes(), source.Bytes()) {
			t.Errorf("%v has other bytes", m.IP)
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
