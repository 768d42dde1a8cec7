// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/control/neighbours"
)

// openSwitches opens the sockets for hellos and the watch of routes, if there are keys of
// switches.
func (e *Engine) openSwitches() error {
	cfg := &e.cfg.Switch
	if len(cfg.Keys) == 0 {
		return nil
	}
	var ports []neighbours.Port
	count := 0
	for pi, p := range e.control.ports {
		if p.Name == "" || saysHello(cfg, p.Name) { // the sockets of ports that may be added, too
			ports = append(ports, p.hellosAt(pi))
		}
		if p.Name != "" && saysHello(cfg, p.Name) {
			count++
		}
	}
	s := &e.switches
	if err := s.Open(cfg, e.cfg.API.Advertise, ports, e.plane.Now, e.notify); err != nil {
		return err
	}
	e.control.setSwitches(s.Hellos, s.Hellos.Bell, s.Routes, s.Routes.Bell)
	if err := e.control.setTrees(cfg); err != nil {
		return err
	}
	e.notify(false, "hellos are exchanged with neighbour switches", "switch", s.Hellos.ID(), "ports", count, "interval", cfg.HelloInterval)
	return nil
}

// saysHello reports whether hellos are to be exchanged at a port.
func saysHello(cfg *config.Switch, port string) bool {
	return cfg.Ports == nil || slices.Contains(cfg.Ports, port)
}

// hellosAt returns what hellos need to know of the port in slot pi.
func (p *port) hellosAt(pi int) neighbours.Port {
	return neighbours.Port{Index: pi, Name: p.Name, Ifindex: p.Ifindex, MAC: p.MAC, MTU: p.MTU, Up: p.Up}
}
