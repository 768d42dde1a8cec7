// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"fmt"
	"sync"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// Suspend stops the device as SIGSTOP stops a process: it takes and sends nothing until resume is
// called, which may be called again. Received frames wait in the socket, as far as that has room. Close
// and other methods of the device wait for resume.
func (d *Device) Suspend() (resume func(), err error) {
	stopped, goOn := make(chan struct{}), make(chan struct{})
	d.mu.Lock()
	if d.closing {
		d.mu.Unlock()
		return nil, fmt.Errorf("device on %s: %w", d.cfg.Interface, endpoint.ErrClosed)
	}
	d.commands = append(d.commands, func() { close(stopped); <-goOn })
	d.mu.Unlock()
	d.kick()
	<-stopped
	return sync.OnceFunc(func() { close(goOn) }), nil
}
