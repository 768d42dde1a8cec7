// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package topology has the networks that are simulated: hosts, switches, links, and the
// next hops between them. Leaf-spines and fat-trees compute next hops from their structure;
// any other graph, and one with failed links, has a table by leaf.
package topology

import (
	"errors"
	"fmt"
)

// Time is a simulated time or duration in picoseconds. At 200 Gbit/s each byte takes 40 of them.
type Time int64

// Units of Time.
const (
	Nanosecond  Time = 1000
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// Seconds returns t in seconds.
func (t Time) Seconds() float64 { return float64(t) / float64(Second) }

// Node numbers the hosts from 0 and the switches after them.
type Node int32

// Link joins two ports. Its properties hold for each direction by itself.
type Link struct {
	A, B         Node
	APort, BPort int32
	Rate         int64 // bit/s
	Delay        Time
	Loss         float64 // probability that a packet is lost
	LossToA      float64 // the same in one direction, beside Loss
	LossToB      float64
	Corruption   float64 // probability that a packet is corrupted, and dropped by who checks it
}

// LossTo returns the probability that a packet on its way to an end of the link is lost.
func (l *Link) LossTo(end Node) float64 {
	one := l.LossToA
	if end == l.B {
		one = l.LossToB
	}
	return l.Loss + (1-l.Loss)*one
}

// Port is a port of a node.
type Port struct {
	Link     int32
	Peer     Node
	PeerPort int32
}

// Failure is the end, or the return, of a link or of all links of a node at a time.
type Failure struct {
	At   Time
	Link int32 // the link, if Node is below 0
	Node Node  // below 0: one link
	Up   bool
}

// Topology is a network. It does not change; failures are an input of the simulation.
type Topology struct {
	Hosts, Switches int
	Links           []Link
	Pods            int // number of partitions
	Failures        []Failure

	first []int32 // index of each node's ports in ports, and the end
	ports []Port
	pod   []int32
	tier  []uint8
	shape shape
}

// shape is what is known of a network by its structure.
type shape interface {
	name(n Node) string
	// nextHops returns the ports of a switch towards a host. It returns nil for a network
	// without a structure, which is routed by a table.
	nextHops(sw, dst Node) []int32
}

// MaxHosts is the largest number of hosts: a host has 16 bits in the key of a flow.
const MaxHosts = 1 << 16

// Ports returns the ports of a node by number. A host has one.
func (t *Topology) Ports(n Node) []Port { return t.ports[t.first[n]:t.first[n+1]] }

// Pod returns the partition of a node. Nodes of a partition are simulated together.
func (t *Topology) Pod(n Node) int32 { return t.pod[n] }

// Tier returns 0 for a host, 1 for a switch with hosts, and one more for each level above.
func (t *Topology) Tier(n Node) int { return int(t.tier[n]) }

// Name returns the name of a node.
func (t *Topology) Name(n Node) string { return t.shape.name(n) }

// Leaf returns the switch of a host.
func (t *Topology) Leaf(host Node) Node { return t.ports[t.first[host]].Peer }

// IsHost reports whether a node is a host.
func (t *Topology) IsHost(n Node) bool { return int(n) < t.Hosts }

// nodes returns the number of nodes.
func (t *Topology) nodes() int { return t.Hosts + t.Switches }

// index numbers the ports of all nodes in the order of the links.
func (t *Topology) index() error {
	n := t.nodes()
	if t.Hosts == 0 || t.Switches == 0 {
		return fmt.Errorf("topology: %d hosts and %d switches; want at least one of each", t.Hosts, t.Switches)
	}
	if t.Hosts > MaxHosts {
		return fmt.Errorf("topology: %d hosts; want at most %d", t.Hosts, MaxHosts)
	}
	t.first = make([]int32, n+1)
	for i, l := range t.Links {
		if err := l.check(n); err != nil {
			return fmt.Errorf("topology: link %d: %w", i, err)
		}
		t.first[l.A+1]++
		t.first[l.B+1]++
	}
	for i := range n {
		if i < t.Hosts && t.first[i+1] != 1 {
			return fmt.Errorf("topology: host %s has %d links; want one", t.Name(Node(i)), t.first[i+1])
		}
		t.first[i+1] += t.first[i]
	}
	t.ports = make([]Port, 2*len(t.Links))
	next := make([]int32, n)
	for i := range t.Links {
		l := &t.Links[i]
		l.APort, l.BPort = next[l.A], next[l.B]
		next[l.A]++
		next[l.B]++
		t.ports[t.first[l.A]+l.APort] = Port{Link: int32(i), Peer: l.B, PeerPort: l.BPort}
		t.ports[t.first[l.B]+l.BPort] = Port{Link: int32(i), Peer: l.A, PeerPort: l.APort}
	}
	for h := range t.Hosts {
		if leaf := t.Leaf(Node(h)); t.IsHost(leaf) {
			return fmt.Errorf("topology: a link joins the hosts %s and %s; want a switch between them", t.Name(Node(h)), t.Name(leaf))
		}
	}
	return nil
}

// check returns an error for a value that is out of range.
func (l *Link) check(nodes int) error {
	switch {
	case l.A < 0 || int(l.A) >= nodes || l.B < 0 || int(l.B) >= nodes:
		return fmt.Errorf("joins node %d and node %d; there are %d nodes", l.A, l.B, nodes)
	case l.A == l.B:
		return errors.New("joins a node with itself")
	case l.Rate < MinRate || l.Rate > MaxRate:
		return fmt.Errorf("rate %d bit/s; want %d to %d", l.Rate, int64(MinRate), int64(MaxRate))
	case l.Delay <= 0 || l.Delay > Second:
		return fmt.Errorf("delay %d ps; want more than 0, at most %d", l.Delay, Second)
	}
	for _, p := range []float64{l.Loss, l.LossToA, l.LossToB, l.Corruption} {
		if !(p >= 0 && p < 1) {
			return fmt.Errorf("loss %v, to one end %v and to the other one %v, corruption %v; want at least 0 and less than 1", l.Loss, l.LossToA, l.LossToB, l.Corruption)
		}
	}
	return nil
}

// MinRate and MaxRate bound a link's bit rate. A bit takes at least one picosecond.
const (
	MinRate = 1_000_000
	MaxRate = 1_000_000_000_000
)

// CheckFailures returns an error if a failure names no link and no node of t.
func (t *Topology) CheckFailures() error {
	for i, f := range t.Failures {
		switch {
		case f.At < 0:
			return fmt.Errorf("topology: failure %d is at %d ps; want 0 or later", i, f.At)
		case f.Node < 0 && (f.Link < 0 || int(f.Link) >= len(t.Links)):
			return fmt.Errorf("topology: failure %d: link %d does not exist, there are %d", i, f.Link, len(t.Links))
		case int(f.Node) >= t.nodes():
			return fmt.Errorf("topology: failure %d: node %d does not exist, there are %d", i, f.Node, t.nodes())
		}
	}
	return nil
}
