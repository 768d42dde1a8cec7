// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/api"
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

// Running is the gleamd that runs on this machine already.
type Running struct {
	Version string
	Pid     int
	Ports   []api.Port
}

// FindRunning asks at the socket of a configuration; nil: no gleamd answers there, or not to this user.
func FindRunning(ctx context.Context, cfg *config.Config) *Running {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	c := api.Dial(cfg.API.Socket)
	defer c.Close()
	v, err := c.Version(ctx)
	if err != nil {
		return nil
	}
	ports, err := c.Ports(ctx)
	if err != nil {
		return nil
	}
	return &Running{Version: v.Version, Pid: v.Pid, Ports: ports}
}

// Has reports whether the running gleamd has an interface of this network namespace open.
func (r *Running) Has(port string) bool {
	i, err := net.InterfaceByName(port)
	return r != nil && err == nil && slices.ContainsFunc(r.Ports, func(p api.Port) bool {
		return p.Name == port && p.Ifindex == i.Index && p.State == api.PortOpen
	})
}

// Start returns what keeps a switch with this configuration from working on this machine:
// gleamd --check prints it. It changes nothing and needs no privilege. Where gleamd runs, its
// own programs at the ports are no findings, nor what this process lacks to start one. running is
// nil if none runs.
func Start(cfg *config.Config, running *Running) []control.Finding {
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
	if running != nil {
		return slices.DeleteFunc(found, func(f control.Finding) bool { return f.Check == control.CheckXDP && running.Has(f.Port) })
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
