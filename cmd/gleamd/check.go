// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/internal/config"
	"github.com/gleam-rdma/gleam/internal/control"
)

// inspect returns what keeps a switch with this configuration from working on
// this machine. It changes nothing and needs no privilege.
func inspect(cfg *config.Config) []control.Finding {
	found := control.Check(cfg)
	if id, err := systemAccounts.identify(cfg.User, os.Geteuid(), os.Getegid()); err != nil {
		found = append(found, control.Finding{Fatal: os.Geteuid() == 0, Text: err.Error()})
	} else if os.Geteuid() == 0 || cfg.User != config.UserAuto { // else it is not the user that gleamd becomes
		found = append(found, control.CheckState(cfg, id.uid)...)
	}
	if c := &cfg.API; c.Listen.IsValid() && endsSoon(c) {
		found = append(found, control.Finding{
			Text: fmt.Sprintf("api.certificate: %v ends, or has ended, at %s: clients refuse it then", c.Certificate, c.Identity().Expiry().Local().Format(time.RFC3339)), Remedy: "issue a new one",
		})
	}
	if missing := missingCapabilities(); len(missing) > 0 {
		found = append(found, control.Finding{
			Text: fmt.Sprintf("gleamd does not start with the privileges of this process, which lacks %s", strings.Join(missing, ", ")), Remedy: "run it as root",
		})
	}
	return found
}
