// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/internal/config"
	"github.com/gleam-rdma/gleam/internal/control"
	"github.com/gleam-rdma/gleam/internal/privilege"
)

// Checks of Start beside those of package control.
const (
	checkUser         = "user"
	checkCertificate  = "certificate"
	checkCapabilities = "capabilities"
)

// startChecks are all checks of Start.
var startChecks = []string{
	control.CheckInterfaces, control.CheckSwitchID, control.CheckLinks, control.CheckXDP, control.CheckMTU, control.CheckRoutes, control.CheckPrefixes,
	control.CheckFastPath, control.CheckStateFile, checkUser, checkCertificate, checkCapabilities,
}

// Start returns what keeps a switch with this configuration from working on this machine:
// gleamd --check prints it. It changes nothing and needs no privilege. Where gleamd runs, its
// own programs at the ports are no findings, nor what this process lacks to start one.
func Start(cfg *config.Config, runs bool) []control.Finding {
	found := control.Check(cfg)
	if id, err := privilege.Identify(cfg.User, os.Geteuid(), os.Getegid()); err != nil {
		found = append(found, control.Finding{Check: checkUser, Fatal: os.Geteuid() == 0, Text: err.Error()})
	} else if os.Geteuid() == 0 || cfg.User != config.UserAuto { // else it is not the user that gleamd becomes
		found = append(found, control.CheckState(cfg, id.UID)...)
	}
	if c := &cfg.API; c.Listen.IsValid() && EndsSoon(c) {
		found = append(found, control.Finding{
			Check: checkCertificate, Text: fmt.Sprintf("api.certificate: %v ends, or has ended, at %s: clients refuse it then", c.Certificate, c.Identity().Expiry().Local().Format(time.RFC3339)),
			Cost: "gleam --address and gleam group tree do not reach this switch", Remedy: "issue a new one",
		})
	}
	if runs {
		return slices.DeleteFunc(found, func(f control.Finding) bool { return f.Check == control.CheckXDP })
	}
	if missing := privilege.Missing(); len(missing) > 0 {
		found = append(found, control.Finding{
			Check: checkCapabilities, Text: fmt.Sprintf("gleamd does not start with the privileges of this process, which lacks %s", strings.Join(missing, ", ")),
			Cost: "a gleamd that this user starts ends at once", Remedy: "run it as root",
		})
	}
	return found
}

// EndsSoon reports that the certificate of an API over TCP has ended, or ends within a week.
func EndsSoon(c *config.API) bool { return time.Until(c.Identity().Expiry()) < 7*24*time.Hour }
