// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package fabric

import "fmt"

// LeafSpine returns leaves l1…, spines s1…, each leaf with a link to each spine, and as
// many hosts h1… at each leaf.
func LeafSpine(leaves, spines, hostsPerLeaf int) *Topology {
	t := &Topology{}
	for s := 1; s <= spines; s++ {
		t.Switches = append(t.Switches, fmt.Sprintf("s%d", s))
	}
	spine := t.Switches
	for l := 1; l <= leaves; l++ {
		leaf := fmt.Sprintf("l%d", l)
		t.Switches = append(t.Switches, leaf)
		t.join(leaf, spine)
		t.addHosts(leaf, hostsPerLeaf)
	}
	return t
}

// FatTree returns the fat-tree of switches with k ports, k even: (k/2)² cores c1…, and k
// pods, pod p with k/2 aggregation switches ap-1…, k/2 edge switches ep-1…, and k/2 hosts
// at each edge switch.
func FatTree(k int) (*Topology, error) {
	if k < 2 || k%2 != 0 || k > 16 {
		return nil, fmt.Errorf("fat-tree of switches with %d ports; want an even number from 2 to 16", k)
	}
	half := k / 2
	t := &Topology{}
	for c := 1; c <= half*half; c++ {
		t.Switches = append(t.Switches, fmt.Sprintf("c%d", c))
	}
	cores := t.Switches
	for p := 1; p <= k; p++ {
		var aggregation []string
		for a := 1; a <= half; a++ {
			n := fmt.Sprintf("a%d-%d", p, a)
			aggregation = append(aggregation, n)
			t.join(n, cores[(a-1)*half:a*half])
		}
		t.Switches = append(t.Switches, aggregation...)
		for e := 1; e <= half; e++ {
			n := fmt.Sprintf("e%d-%d", p, e)
			t.Switches = append(t.Switches, n)
			t.join(n, aggregation)
			t.addHosts(n, half)
		}
	}
	return t, nil
}

// join adds a link from a node to each of the others.
func (t *Topology) join(node string, others []string) {
	for _, o := range others {
		t.Links = append(t.Links, Link{A: node, B: o})
	}
}

// addHosts adds n hosts to a switch, with the next free numbers.
func (t *Topology) addHosts(sw string, n int) {
	for range n {
		h := fmt.Sprintf("h%d", len(t.Hosts)+1)
		t.Hosts = append(t.Hosts, h)
		t.join(sw, []string{h})
	}
}
