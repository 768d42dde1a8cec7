// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"slices"
	"strings"
	"testing"
)

// linked gives a fabric the paper's links.
func linked(c Clos) Clos {
	c.HostRate, c.FabricRate, c.HostDelay, c.FabricDelay = 200e9, 200e9, Microsecond, Microsecond
	return c
}

func fatTree(t *testing.T, k, oversubscription int) Clos {
	t.Helper()
	c, err := FatTree(k, oversubscription)
	if err != nil {
		t.Fatal(err)
	}
	return linked(c)
}

func build(t *testing.T, c Clos) *Topology {
	t.Helper()
	top, err := c.Build()
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// TestStructureIsShortestPaths compares next hops by structure with those of a search.
func TestStructureIsShortestPaths(t *testing.T) {
	parallel := linked(Clos{Pods: 3, Leaves: 2, HostsPerLeaf: 3, Aggs: 2, Uplinks: 4, Cores: 4})
	for name, c := range map[string]Clos{
		"leaf-spine": linked(LeafSpine(4, 3, 5)), "fat-tree": fatTree(t, 4, 1), "oversubscribed": fatTree(t, 8, 3), "parallel links": parallel,
	} {
		top := build(t, c)
		by, table := top.Routes(nil), top.Routes(func(int32) bool { return false })
		if by.leaf != nil || table.leaf == nil {
			t.Fatalf("%s: want one by structure and one by table", name)
		}
		for sw := top.Hosts; sw < top.nodes(); sw++ {
			for h := range top.Hosts {
				if a, b := by.NextHops(Node(sw), Node(h)), table.NextHops(Node(sw), Node(h)); !slices.Equal(a, b) || len(a) == 0 {
					t.Fatalf("%s: %s to %s: structure %v, search %v", name, top.Name(Node(sw)), top.Name(Node(h)), a, b)
				}
			}
		}
	}
}

// TestPaper counts what the paper says: 16,384 hosts and switches with 64 ports.
func TestPaper(t *testing.T) {
	top := build(t, linked(Paper()))
	if top.Hosts != 16384 || top.Switches != 512+512+256 || top.Pods != 16 {
		t.Errorf("%d hosts, %d switches, %d pods", top.Hosts, top.Switches, top.Pods)
	}
	for sw := top.Hosts; sw < top.nodes(); sw++ {
		if n := len(top.Ports(Node(sw))); n != 64 {
			t.Fatalf("switch %s has %d ports", top.Name(Node(sw)), n)
		}
	}
	r := top.Routes(nil)
	core := Node(top.nodes() - 1)
	if n := r.NextHops(core, 0); len(n) != 4 {
		t.Errorf("a core has %d links to a pod, want 4", len(n))
	}
	if got := testing.AllocsPerRun(100, func() { r.NextHops(core, 5000) }); got != 0 {
		t.Errorf("NextHops allocates %v times", got)
	}
	if top.Pod(0) != 0 || top.Pod(16383) != 15 || top.Leaf(16383) != Node(16384+511) {
		t.Errorf("host 0 in pod %d, host 16383 in pod %d at %d", top.Pod(0), top.Pod(16383), top.Leaf(16383))
	}
	if top.Tier(0) != 0 || top.Tier(top.Leaf(0)) != 1 || top.Tier(core) != 3 {
		t.Errorf("tiers %d, %d, %d", top.Tier(0), top.Tier(top.Leaf(0)), top.Tier(core))
	}
}

// TestRoutesAroundFailures takes one link of an aggregation switch: traffic of other pods avoids the
// cores that need it, unless there is no other path.
func TestRoutesAroundFailures(t *testing.T) {
	top := build(t, fatTree(t, 4, 1))
	leaf, agg := top.Leaf(0), Node(-1)
	r := top.Routes(nil)
	agg = top.Ports(leaf)[r.NextHops(leaf, Node(top.Hosts-1))[0]].Peer
	var lost int32 = -1
	for _, p := range top.Ports(agg) {
		if p.Peer == leaf {
			lost = p.Link
		}
	}
	r = top.Routes(func(l int32) bool { return l == lost })
	if hops := r.NextHops(leaf, Node(top.Hosts-1)); len(hops) != 1 || top.Ports(leaf)[hops[0]].Peer == agg {
		t.Errorf("next hops %v of %s, with %s not reachable", hops, top.Name(leaf), top.Name(agg))
	}
	other := top.Leaf(Node(top.Hosts - 1))
	for _, p := range r.NextHops(other, 0) {
		if peer := top.Ports(other)[p].Peer; len(r.NextHops(peer, 0)) == 0 {
			t.Errorf("%s has no way to host 0, but is a next hop", top.Name(peer))
		}
	}
	hostLink := top.Ports(0)[0].Link
	r = top.Routes(func(l int32) bool { return l == hostLink })
	if hops := r.NextHops(leaf, 0); len(hops) != 0 {
		t.Errorf("next hops %v over a link that is down", hops)
	}
}

func TestGraph(t *testing.T) {
	l := func(a, b Node) Link { return Link{A: a, B: b, Rate: 1e9, Delay: Microsecond} }
	// h1 - s1 - s2 - h2, s1 - s3 - s2
	top, err := Graph([]string{"h1", "h2"}, []string{"s1", "s2", "s3"}, []Link{l(0, 2), l(1, 3), l(2, 3), l(2, 4), l(4, 3)})
	if err != nil {
		t.Fatal(err)
	}
	if hops := top.Routes(nil).NextHops(2, 1); len(hops) != 1 || top.Ports(2)[hops[0]].Peer != 3 {
		t.Errorf("next hops %v of s1 to h2", hops)
	}
	direct := func(link int32) bool { return link == 2 }
	if hops := top.Routes(direct).NextHops(2, 1); len(hops) != 1 || top.Ports(2)[hops[0]].Peer != 4 {
		t.Errorf("next hops %v of s1 to h2 without the direct link", hops)
	}
	if top.Pods != 2 || top.Pod(0) != top.Pod(2) || top.Tier(4) != 2 || top.Name(4) != "s3" {
		t.Errorf("%d pods, h1 in %d, s1 in %d; tier %d of %s", top.Pods, top.Pod(0), top.Pod(2), top.Tier(4), top.Name(4))
	}
}

func TestErrors(t *testing.T) {
	l := func(a, b Node) Link { return Link{A: a, B: b, Rate: 1e9, Delay: Microsecond} }
	graph := func(change func(*[]Link)) error {
		links := []Link{l(0, 2), l(1, 3), l(2, 3)}
		change(&links)
		_, err := Graph([]string{"h1", "h2"}, []string{"s1", "s2"}, links)
		return err
	}
	clos := func(change func(*Clos)) error {
		c := fatTree(t, 4, 1)
		change(&c)
		_, err := c.Build()
		return err
	}
	_, odd := FatTree(5, 1)
	_, ratio := FatTree(4, 2)
	failures := build(t, fatTree(t, 4, 1))
	failures.Failures = []Failure{{Node: -1, Link: 1000}}
	for want, err := range map[string]error{
		"host h1 has 2 links":             graph(func(l *[]Link) { *l = append(*l, (*l)[0]) }),
		"no path from switch s1":          graph(func(l *[]Link) { *l = (*l)[:2] }),
		"want a switch between them":      graph(func(l *[]Link) { *l = []Link{{A: 0, B: 1, Rate: 1e9, Delay: 1}} }),
		"link 1: rate 5":                  graph(func(l *[]Link) { (*l)[1].Rate = 5 }),
		"delay 0 ps":                      graph(func(l *[]Link) { (*l)[0].Delay = 0 }),
		"loss 1,":                         graph(func(l *[]Link) { (*l)[0].Loss = 1 }),
		"with itself":                     graph(func(l *[]Link) { (*l)[2].A = 3 }),
		"there are 4 nodes":               graph(func(l *[]Link) { (*l)[2].A = 4 }),
		"0 leaves":                        clos(func(c *Clos) { c.Leaves = 0 }),
		"no cores between":                clos(func(c *Clos) { c.Cores, c.Uplinks = 0, 0 }),
		"want an equal number of cores":   clos(func(c *Clos) { c.Cores = 3 }),
		"want at most 65536":              clos(func(c *Clos) { c.HostsPerLeaf = 60000 }),
		"even number":                     odd,
		"oversubscription 2":              ratio,
		"failure 0: link 1000 does not e": failures.CheckFailures(),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}
