// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"slices"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/control/fib"
	"github.com/gleam-rdma/gleam/internal/control/neighbours"
)

// engineSwitches is what a switch with keys of switches runs beside the control loop.
type engineSwitches struct {
	hellos *neighbours.Runtime // nil without keys
	routes *fib.Watcher        // nil without keys
}

// openSwitches opens the sockets for hellos and the watch of routes, if there are keys of
// switches.
func (e *Engine) openSwitches() (err error) {
	cfg := &e.cfg.Switch
	if len(cfg.Keys) == 0 {
		return nil
	}
	var ports []neighbours.Port
	count := 0
	for pi, p := range e.control.ports {
		if p.Name == "" || saysHello(cfg, p.Name) { // the sockets of ports that may be added, too
			ports = append(ports, neighbours.Port{Index: pi, Name: p.Name, Ifindex: p.Ifindex, MAC: p.MAC, MTU: p.MTU, Up: p.Up})
		}
		if p.Name != "" && saysHello(cfg, p.Name) {
			count++
		}
	}
	s := &e.switches
	if s.hellos, err = neighbours.Open(cfg, e.cfg.API.Advertise, ports, e.plane.Now, e.notify); err != nil {
		return err
	}
	if s.routes, err = fib.NewWatcher(func(err error) {
		e.notify(true, "routes of members are not watched as they should be", "error", err)
	}); err != nil {
		return err
	}
	e.control.setSwitches(s.hellos, s.hellos.Bell, s.routes, s.routes.Bell)
	if err := e.control.setTrees(cfg); err != nil {
		return err
	}
	e.notify(false, "hellos are exchanged with neighbour switches", "switch", s.hellos.ID(), "ports", count, "interval", cfg.HelloInterval)
	return nil
}

// saysHello reports whether hellos are to be exchanged at a port.
func saysHello(cfg *config.Switch, port string) bool {
	return cfg.Ports == nil || slices.Contains(cfg.Ports, port)
}

// run exchanges hellos and watches routes until ctx ends.
func (s *engineSwitches) run(ctx context.Context) {
	if s.hellos == nil {
		return
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.routes.Run(ctx)
	}()
	s.hellos.Run(ctx)
	<-watched
}

// closeSpares closes the sockets of ports that might be added.
func (s *engineSwitches) closeSpares() {
	if s.hellos != nil {
		_ = s.hellos.CloseSpares() // they are closed whatever it returns
	}
}

func (s *engineSwitches) close() (err error) {
	if s.routes != nil {
		s.routes.Close()
	}
	if s.hellos != nil {
		err = s.hellos.Close()
	}
	return err
}
