// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/doctor/kernel"
)

// Kernel implements api.Backend. Its features are those that the engine found when it was
// opened: a confined process may not try them.
func (e *Engine) Kernel() (*api.Kernel, error) {
	ports, err := e.Ports()
	if err != nil {
		return nil, err
	}
	return describeKernel(e.kernel, ports, e.cfg.FastPath != config.FastPathOff), nil
}

// describeKernel adds the ports to what was found at the start.
func describeKernel(found *api.Kernel, ports []api.Port, fastPath bool) *api.Kernel {
	k := *found
	k.Degraded = slices.Clone(found.Degraded)
	if !fastPath {
		k.Degraded = slices.DeleteFunc(k.Degraded, func(d api.Degradation) bool { return kernel.OfFastPath(d.Feature) })
	}
	var links []kernel.Link
	for i := range ports {
		p := &ports[i]
		if p.State != api.PortOpen {
			continue
		}
		links = append(links, kernel.Link{Name: p.Name, Driver: p.Driver, Index: p.Ifindex})
		if p.XDPMode == api.XDPGeneric {
			k.Degraded = append(k.Degraded, kernel.Generic(p.Name, p.Driver))
		}
		if p.FastPath != nil && !p.FastPath.Used && p.FastPath.Reason != "" {
			k.Degraded = append(k.Degraded, kernel.OffFastPath(p.Name, p.FastPath.Reason))
		}
	}
	k.Interfaces = kernel.Interfaces(links)
	return &k
}
