// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/internal/control/fib"
	"github.com/gleam-rdma/gleam/internal/control/neighbours"
)

// Runtime is what a switch with keys of switches runs beside the control loop. The zero value is that of
// a switch without keys.
type Runtime struct {
	Hellos *neighbours.Runtime // nil without keys
	Routes *fib.Watcher        // nil without keys
}

// Open opens the sockets for hellos at ports, and the watch of routes. After an error, Close frees what is open.
func (r *Runtime) Open(cfg *config.Switch, advertise netip.AddrPort, ports []neighbours.Port, now func() time.Duration, notify dataplane.Notify) (err error) {
	if r.Hellos, err = neighbours.Open(cfg, advertise, ports, now, notify); err != nil {
		return err
	}
	r.Routes, err = fib.NewWatcher(func(err error) {
		notify(true, "routes of members are not watched as they should be", "error", err)
	})
	return err
}

// Run exchanges hellos and watches routes until ctx ends.
func (r *Runtime) Run(ctx context.Context) {
	if r.Hellos == nil {
		return
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		r.Routes.Run(ctx)
	}()
	r.Hellos.Run(ctx)
	<-watched
}

// CloseSpares closes the sockets of ports that might be added.
func (r *Runtime) CloseSpares() {
	if r.Hellos != nil {
		_ = r.Hellos.CloseSpares() // they are closed whatever it returns
	}
}

// Close closes all sockets.
func (r *Runtime) Close() (err error) {
	if r.Routes != nil {
		r.Routes.Close()
	}
	if r.Hellos != nil {
		err = r.Hellos.Close()
	}
	return err
}
