// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane"
)

// checkPorts returns what keeps the configured interfaces from being ports. It
// changes nothing and needs no privilege.
func checkPorts(cfg *config.Config) (errs []error) {
	for i := range cfg.Ports {
		if err := dataplane.CheckPort(&cfg.Ports[i]); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
