// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"fmt"

	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Neighbour is a switch at the other end of a port's link, whose adjacency is up.
type Neighbour struct {
	ID   mcast.Neighbor
	Port int
	MAC  rocev2.MAC
	// Session is the number that both ends have agreed upon: a new one when either has
	// started again, or the adjacency was lost. Groups hear of it by SetTable.
	Session uint64
}

// neighbour is a port's neighbour as the workers have it: frames are from it if they come
// by the port with its MAC address as their source. The zero value is none. No host can
// send such a frame by another port; the link to a neighbour is assumed to have no other
// station.
type neighbour struct {
	id      mcast.Neighbor
	mac     rocev2.MAC
	session uint64
}

// SetNeighbours tells the workers all neighbours that are up. Those of an earlier call
// that are not in list are down. Groups keep their legs to a neighbour that is down, and
// copies for it are dropped and counted.
func (p *Plane) SetNeighbours(list []Neighbour) error {
	at := make([]neighbour, len(p.ports))
	ports := make(map[mcast.Neighbor]int, len(list))
	for _, n := range list {
		switch other, twice := ports[n.ID]; {
		case n.ID == 0:
			return fmt.Errorf("neighbour with MAC address %v at port %d: numbers begin with 1", n.MAC, n.Port)
		case n.Port < 0 || n.Port >= len(p.ports):
			return fmt.Errorf("neighbour %d: there is no port %d, there are %d", n.ID, n.Port, len(p.ports))
		case twice:
			return fmt.Errorf("neighbour %d is at port %s and at port %s: one number is for one adjacency", n.ID, p.ports[other].name, p.ports[n.Port].name)
		case at[n.Port].id != 0:
			return fmt.Errorf("port %s has neighbours %d and %d: a link has one", p.ports[n.Port].name, at[n.Port].id, n.ID)
		}
		at[n.Port], ports[n.ID] = neighbour{n.ID, n.MAC, n.Session}, n.Port
	}
	if !p.workers.do(func(w *worker) {
		for i, x := range w.ports {
			if x.neighbour != at[i] {
				w.disturbFast()
				x.neighbour = at[i]
			}
		}
		w.neighbourPorts = ports
	}) {
		return ErrStopped
	}
	p.neighbourPorts = ports
	return nil
}

// from returns the neighbour that has sent a frame with source address src, or 0.
func (n *neighbour) from(src rocev2.MAC) mcast.Neighbor {
	if n.id != 0 && n.mac == src {
		return n.id
	}
	return 0
}

// isUp reports whether frames for l can leave by p: a forwarded leg needs its neighbour.
func (l *leg) isUp(p *port) bool { return l.kind == mcast.Connected || p.neighbour.id == l.neighbour }

// nextHop returns the MAC address that frames for l are sent to by p. l is up.
func (l *leg) nextHop(p *port) rocev2.MAC {
	if l.kind == mcast.Forwarded {
		return p.neighbour.mac
	}
	return l.mac
}
