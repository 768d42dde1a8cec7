// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/control"
)

// inspect returns what keeps a switch with this configuration from working on
// this machine. It changes nothing and needs no privilege.
func inspect(cfg *config.Config) []control.Finding {
	found := control.Check(cfg)
	if missing := missingCapabilities(); len(missing) > 0 {
		found = append(found, control.Finding{
			Text: fmt.Sprintf("gleamd does not start with the privileges of this process, which lacks %s", strings.Join(missing, ", ")), Remedy: "run it as root",
		})
	}
	return found
}
