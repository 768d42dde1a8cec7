// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"math/bits"

	"github.com/gleam-rdma/gleam/lab/sim"
	"github.com/gleam-rdma/gleam/lab/sim/analytic"
	"github.com/gleam-rdma/gleam/lab/sim/topology"
	"github.com/gleam-rdma/gleam/lab/sim/workload"
	"github.com/gleam-rdma/gleam/lab/simulate/spec"
)

// headerBytes are those of each packet besides the payload, on the wire: preamble, Ethernet with FCS, the gap,
// IPv4, UDP, BTH and ICRC.
const headerBytes = 82

// formula returns the time of a program by its closed form; 0 if there is none. It knows no
// queues, no losses and no other program.
func formula(p *spec.Program, cfg *sim.Config) topology.Time {
	script, ok := p.Program.(*workload.Script)
	if !ok {
		return 0
	}
	c := script.Communicators()[0]
	t := cfg.Topology
	link := t.Links[t.Ports(c.Ranks[0])[0].Link]
	path := analytic.Path{Rate: link.Rate, Delay: link.Delay, Payload: cfg.PathMTU, Header: headerBytes}
	if cfg.Host.Rate > 0 {
		path.Rate = min(path.Rate, cfg.Host.Rate)
	}
	if path.Payload == 0 {
		path.Payload = 4096
	}
	n := len(c.Ranks)
	routes := t.Routes(nil)
	at := func(i int) topology.Node { return c.Ranks[(c.Root+i)%n] }
	lag := func(a, b topology.Node) topology.Time {
		hop := path
		hop.Links = links(t, routes, a, b)
		return hop.Lag() + p.Overhead
	}
	var chain, far topology.Time // along the ring, and to the rank that is farthest from its neighbour
	for i := 1; i < n; i++ {
		one := lag(at(i-1), at(i))
		chain, far = chain+one, max(far, one)
		path.Links = max(path.Links, links(t, routes, at(0), at(i)))
	}
	switch p.Kind + " " + p.Algorithm {
	case "hpl group", "mpi group", "nccl group":
		return analytic.Group(path, p.Bytes) + p.Overhead
	case "hpl 1ring", "nccl ring", "mpi chain", "mpi pipeline":
		return analytic.Ring(path, p.Bytes, n, p.Chunks, chain)
	case "hpl long", "hpl swap", "mpi scatter-ring":
		return analytic.Long(path, p.Bytes, n, far)
	case "hpl swap-central": // all of it to one rank before
		return path.Transfer(p.Bytes) + far + analytic.Long(path, p.Bytes, n, far)
	case "mpi scatter-allgather":
		return analytic.ScatterDoubling(path, p.Bytes, n, path.Lag()+p.Overhead)
	case "hpl exchange":
		return analytic.Copies(path, p.Bytes, bits.Len(uint(n-1)), bits.Len(uint(n-1)), path.Lag()+p.Overhead)
	}
	if copies, hops, ok := script.Tree(); ok {
		return analytic.Copies(path, p.Bytes, copies, hops, path.Lag()+p.Overhead)
	}
	return 0
}

// links returns the number of links between two hosts.
func links(t *topology.Topology, r *topology.Routes, a, b topology.Node) int {
	n, at := 1, t.Leaf(a)
	for at != b {
		hops := r.NextHops(at, b)
		if len(hops) == 0 {
			return n
		}
		at = t.Ports(at)[hops[0]].Peer
		n++
	}
	return n
}
