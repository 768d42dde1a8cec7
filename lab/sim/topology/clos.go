// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package topology

import "fmt"

// Clos describes a fabric of two tiers (leaf-spine) or three (fat-tree).
type Clos struct {
	Pods         int // 1 for two tiers
	Leaves       int // leaves of a pod
	HostsPerLeaf int
	Aggs         int // aggregation switches of a pod; the spines, if there are two tiers
	Uplinks      int // uplinks of an aggregation switch; 0 for two tiers
	Cores        int // 0 for two tiers

	HostRate, FabricRate   int64 // bit/s
	HostDelay, FabricDelay Time
	Loss, Corruption       float64 // the shares of each link between switches
	CoreLoss               float64 // the loss of each link to a core, in the place of Loss
	HostLoss               float64 // the loss of each link to a host
}

// LeafSpine returns a fabric of two tiers: each leaf has a link to each spine.
func LeafSpine(leaves, spines, hostsPerLeaf int) Clos {
	return Clos{Pods: 1, Leaves: leaves, HostsPerLeaf: hostsPerLeaf, Aggs: spines}
}

// FatTree returns the fabric of k pods of switches with k ports. Leaves have oversubscription times as
// many ports for hosts as for aggregation switches, of which a pod has as many.
func FatTree(k, oversubscription int) (Clos, error) {
	if k < 2 || k%2 != 0 {
		return Clos{}, fmt.Errorf("topology: fat-tree of switches with %d ports; want an even number from 2", k)
	}
	if oversubscription < 1 || k%(1+oversubscription) != 0 {
		return Clos{}, fmt.Errorf("topology: oversubscription %d of switches with %d ports; want at least 1, and one more than it a divisor of the ports", oversubscription, k)
	}
	up := k / (1 + oversubscription)
	return Clos{Pods: k, Leaves: k / 2, HostsPerLeaf: k - up, Aggs: up, Uplinks: k / 2, Cores: up * k / 2}, nil
}

// Paper returns the 16,384 hosts of the paper behind switches with 64 ports: 16 pods of 32
// leaves with 32 hosts, 32 aggregation switches in each, and 256 cores, each with four
// links to one aggregation switch of each pod.
func Paper() Clos {
	return Clos{Pods: 16, Leaves: 32, HostsPerLeaf: 32, Aggs: 32, Uplinks: 32, Cores: 256}
}

func (c *Clos) check() error {
	for _, n := range []struct {
		name  string
		value int
	}{{"pods", c.Pods}, {"leaves of a pod", c.Leaves}, {"hosts of a leaf", c.HostsPerLeaf}, {"aggregation switches or spines", c.Aggs}} {
		if n.value < 1 || n.value > MaxHosts {
			return fmt.Errorf("topology: %d %s; want 1 to %d", n.value, n.name, MaxHosts)
		}
	}
	switch {
	case c.Pods > 1 && c.Cores < 1:
		return fmt.Errorf("topology: %d pods and no cores between them", c.Pods)
	case c.Cores == 0 && c.Uplinks == 0:
		return nil
	case c.Cores < 1 || c.Uplinks < 1 || c.Cores%c.Aggs != 0 || c.Uplinks%(c.Cores/c.Aggs) != 0:
		return fmt.Errorf("topology: %d cores for %d aggregation switches of a pod with %d uplinks each; want an equal number of cores for each of them, and of links to each core", c.Cores, c.Aggs, c.Uplinks)
	}
	return nil
}

// Build returns the topology. Hosts are numbered by pod, leaf and port; so are switches,
// first all leaves, then the aggregation switches, then the cores. Leaves and
// aggregation switches have their ports downwards first.
func (c Clos) Build() (*Topology, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	hosts, leaves, aggs := c.Pods*c.Leaves*c.HostsPerLeaf, c.Pods*c.Leaves, c.Pods*c.Aggs
	if hosts > MaxHosts {
		return nil, fmt.Errorf("topology: %d hosts; want at most %d", hosts, MaxHosts)
	}
	f := &clos{Clos: c, hosts: hosts, leaf: Node(hosts), agg: Node(hosts + leaves), core: Node(hosts + leaves + aggs)}
	t := &Topology{Hosts: hosts, Switches: leaves + aggs + c.Cores, Pods: c.Pods, shape: f}
	if f.Cores > 0 {
		f.parallel = c.Uplinks / (c.Cores / c.Aggs)
	}
	for h := range hosts {
		t.Links = append(t.Links, Link{A: Node(h), B: f.leaf + Node(h/c.HostsPerLeaf), Rate: c.HostRate, Delay: c.HostDelay, Loss: c.HostLoss})
	}
	fabric := Link{Rate: c.FabricRate, Delay: c.FabricDelay, Loss: c.Loss, Corruption: c.Corruption}
	join := func(a, b Node) {
		fabric.A, fabric.B = a, b
		t.Links = append(t.Links, fabric)
	}
	for l := range leaves {
		for a := range c.Aggs {
			join(f.leaf+Node(l), f.agg+Node(l/c.Leaves*c.Aggs+a))
		}
	}
	fabric.Loss = c.CoreLoss
	for a := range aggs {
		for u := range c.Uplinks {
			join(f.agg+Node(a), f.core+Node(a%c.Aggs*(c.Cores/c.Aggs)+u/f.parallel))
		}
	}
	f.count = make([]int32, max(c.HostsPerLeaf+c.Aggs, c.Leaves+c.Uplinks, c.Pods*f.parallel))
	for i := range f.count {
		f.count[i] = int32(i)
	}
	f.partition(t)
	return t, t.index()
}

// clos is a Clos that is built.
type clos struct {
	Clos
	hosts           int
	leaf, agg, core Node    // the first of each kind
	parallel        int     // links between a core and a pod
	count           []int32 // 0, 1, 2...: all sets of next hops are a part of it
}

// partition makes a partition of each pod, or of each leaf if there is one pod. Cores, or
// spines, are spread over all of them.
func (f *clos) partition(t *Topology) {
	n := t.nodes()
	t.pod, t.tier = make([]int32, n), make([]uint8, n)
	if f.Pods == 1 {
		t.Pods = f.Leaves
	}
	for i := range n {
		switch kind, pod, k := f.kind(Node(i)); kind {
		case isHost:
			t.pod[i] = int32(i / f.HostsPerLeaf)
			if f.Pods > 1 {
				t.pod[i] = int32(pod)
			}
		case isLeaf:
			t.pod[i], t.tier[i] = int32(k), 1
			if f.Pods > 1 {
				t.pod[i] = int32(pod)
			}
		case isAgg:
			t.pod[i], t.tier[i] = int32(k%t.Pods), 2
			if f.Pods > 1 {
				t.pod[i] = int32(pod)
			}
		default:
			t.pod[i], t.tier[i] = int32(k%t.Pods), 3
		}
	}
}

// Kinds of nodes.
const (
	isHost = iota
	isLeaf
	isAgg
	isCore
)

// kind returns the kind of a node, its pod, and its number among the leaves or
// aggregation switches of the pod, among the hosts of the leaf, or among the cores.
func (f *clos) kind(n Node) (kind, pod, k int) {
	switch {
	case int(n) < f.hosts:
		leaf := int(n) / f.HostsPerLeaf
		return isHost, leaf / f.Leaves, int(n) % f.HostsPerLeaf
	case n < f.agg:
		return isLeaf, int(n-f.leaf) / f.Leaves, int(n-f.leaf) % f.Leaves
	case n < f.core:
		return isAgg, int(n-f.agg) / f.Aggs, int(n-f.agg) % f.Aggs
	}
	return isCore, 0, int(n - f.core)
}

func (f *clos) nextHops(sw, dst Node) []int32 {
	leaf := int(dst) / f.HostsPerLeaf
	pod := leaf / f.Leaves
	switch kind, own, _ := f.kind(sw); kind {
	case isLeaf:
		if int(sw-f.leaf) == leaf {
			return f.ports(int(dst)%f.HostsPerLeaf, 1)
		}
		return f.ports(f.HostsPerLeaf, f.Aggs)
	case isAgg:
		if own == pod {
			return f.ports(leaf%f.Leaves, 1)
		}
		return f.ports(f.Leaves, f.Uplinks)
	}
	return f.ports(pod*f.parallel, f.parallel)
}

// ports returns n ports from the first on.
func (f *clos) ports(first, n int) []int32 { return f.count[first : first+n : first+n] }

func (f *clos) name(n Node) string {
	switch kind, pod, k := f.kind(n); {
	case kind == isHost:
		return fmt.Sprintf("h%d", n+1)
	case kind == isCore:
		return fmt.Sprintf("c%d", k+1)
	case kind == isLeaf && f.Cores == 0:
		return fmt.Sprintf("l%d", k+1)
	case kind == isAgg && f.Cores == 0:
		return fmt.Sprintf("s%d", k+1)
	case kind == isLeaf:
		return fmt.Sprintf("e%d-%d", pod+1, k+1)
	default:
		return fmt.Sprintf("a%d-%d", pod+1, k+1)
	}
}
