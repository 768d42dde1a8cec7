// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/dataplane"
)

// inspect returns what keeps a switch with this configuration from working on
// this machine. It changes nothing and needs no privilege.
func inspect(cfg *config.Config) []dataplane.Finding {
	found := dataplane.Check(cfg)
	if missing := missingCapabilities(); len(missing) > 0 {
		found = append(found, dataplane.Finding{
			Text: fmt.Sprintf("gleamd does not start with the privileges of this process, which lacks %s", strings.Join(missing, ", ")), Remedy: "run it as root",
		})
	}
	return found
}
