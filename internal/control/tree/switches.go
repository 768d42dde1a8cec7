// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"

	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/envelope/hello"
	"github.com/gleam-rdma/gleam/internal/control/neighbours"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Switches is what the control loop knows of other switches: the neighbours that hellos have
// found. Without keys of switches there are none, and a router is a host to the switch.
type Switches struct {
	Hellos Hellos // nil: no keys of switches are configured
	Bell   <-chan struct{}
	Table  neighbours.Table
	Port   func(index int) Port // the port of a slot
	Notify dataplane.Notify
}

// Port is what operators see of a port of the switch; the zero value is a slot without one.
type Port struct {
	Name string
	MAC  rocev2.MAC
	MTU  int
}

// Hellos is the part of neighbours.Runtime that the control loop uses.
type Hellos interface {
	Links() []neighbours.Link
	Has(port int) bool
	SetLink(port int, up bool, mtu int)
	SetInterface(port, ifindex int, mac rocev2.MAC) error
	SetPort(neighbours.Port) error
	ID() hello.SwitchID
}

// Reasons are those for which hellos have no effect.
var Reasons = dataplane.NewReasonTable("hello_", hello.NumDrops)

// Link is this switch's end of the link to a neighbour.
type Link struct {
	Port int // index
	MTU  int // the lower one of both ends; 0: as the port's
}

// LinkTo returns the link to a neighbour, be it up or down, or false if it is not known (any
// more).
func (s *Switches) LinkTo(n mcast.Neighbor) (l Link, ok bool) {
	if s == nil {
		return Link{}, false
	}
	a, ok := s.Table.Find(n)
	return Link{a.Port, a.MTU}, ok
}

// SetLink gives the hello protocol the state of a port's interface.
func (s *Switches) SetLink(port int, up bool, mtu int) {
	if s.Hellos != nil {
		s.Hellos.SetLink(port, up, mtu)
	}
}

// Add begins to exchange hellos at a port that a reload has added.
func (s *Switches) Add(p neighbours.Port) {
	if s.Hellos == nil {
		return
	}
	if err := s.Hellos.SetPort(p); err != nil {
		s.Notify(true, "no hellos are exchanged with neighbour switches at a port: restart gleamd", "port", p.Name, "error", err)
	}
}

// End ends them at a port that a reload removes, and reports whether there were any. The neighbour there is
// down.
func (s *Switches) End(port int) bool {
	if s.Hellos == nil || !s.Hellos.Has(port) {
		return false
	}
	if err := s.Hellos.SetPort(neighbours.Port{Index: port}); err != nil {
		s.Notify(true, "hellos go on at a port that is removed", "port", s.Port(port).Name, "error", err)
	}
	return true
}

// Move gives the hello protocol the interface that a port has now.
func (s *Switches) Move(port, ifindex int) {
	if s.Hellos == nil {
		return
	}
	p := s.Port(port)
	if err := s.Hellos.SetInterface(port, ifindex, p.MAC); err != nil {
		s.Notify(true, "no hellos are exchanged with neighbour switches at a port: restart gleamd", "port", p.Name, "error", err)
	}
}

// AddDrops adds the hellos that had no effect to those of the workers, by name.
func (s *Switches) AddDrops(normal, drops map[string]uint64) {
	if s.Hellos == nil {
		return
	}
	for _, l := range s.Hellos.Links() {
		Reasons.AddTo(normal, drops, l.Drops[:])
	}
}

// Silence says why no neighbour is up at a port.
func (s *Switches) Silence(port int) string {
	for _, l := range s.Hellos.Links() {
		if l.Port == port && l.LastDrop.Drop != 0 {
			return fmt.Sprintf("%v, and %v sends %s", l.Reason, l.LastDrop.From, l.LastDrop.Drop.Text())
		} else if l.Port == port {
			return l.Reason.String()
		}
	}
	return "no hello from it"
}
