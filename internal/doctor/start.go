// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/confine/privilege"
	"github.com/gleam-rdma/gleam/internal/control"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
)

// Checks of Start beside those of package checks.
const (
	checkUser         = "user"
	checkCertificate  = "certificate"
	checkCapabilities = "capabilities"
)

// startChecks are all checks of Start.
var startChecks = append(checks.All[:len(checks.All):len(checks.All)], control.CheckStateFile, checkUser, checkCertificate, checkCapabilities)

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
func Start(cfg *config.Config, running *Running) []checks.Finding {
	return thisMachine().start(cfg, running).Findings
}

func (m *machine) start(cfg *config.Config, running *Running) *checks.Outcome {
	if running != nil {
		m.Pid, m.Elsewhere = running.Pid, m.elsewhere(running)
	}
	o := m.Run(cfg)
	o.Findings = append(o.Findings, process(cfg, running)...)
	if running == nil {
		o.Skipped = append(o.Skipped, checks.Skipped{Check: checks.CheckPortGuard, Reason: "no gleamd answers"})
	} else {
		checks.CheckGuards(o, guarded(running.Ports, time.Now()))
		o.Findings = slices.DeleteFunc(o.Findings, func(f checks.Finding) bool { return f.Check == checks.CheckXDP && running.Has(f.Port) })
	}
	return o
}

// elsewhere reports whether the running gleamd is in another network namespace than the calling
// thread: so are its process, and all interfaces that it has open. Who may not read the
// first of another user does not know.
func (m *machine) elsewhere(r *Running) bool {
	its, err := os.Readlink(filepath.Join("/", m.Root, "proc", strconv.Itoa(r.Pid), "ns/net"))
	if err != nil {
		return false
	}
	own, err := os.Readlink(filepath.Join("/", m.Root, "proc/thread-self/ns/net"))
	return err == nil && its != own && !slices.ContainsFunc(r.Ports, func(p api.Port) bool { return r.Has(p.Name) })
}

// process returns what keeps this process, or the user that it would become, from running a
// switch.
func process(cfg *config.Config, running *Running) (found []checks.Finding) {
	if id, err := privilege.Identify(cfg.User, os.Geteuid(), os.Getegid()); err != nil {
		found = append(found, checks.Finding{Check: checkUser, Fatal: os.Geteuid() == 0, Text: err.Error()})
	} else if os.Geteuid() == 0 || cfg.User != config.UserAuto { // else it is not the user that gleamd becomes
		found = append(found, control.CheckState(cfg, id.UID)...)
	}
	if c := &cfg.API; c.Listen.IsValid() && EndsSoon(c) {
		found = append(found, checks.Finding{
			Check: checkCertificate, Text: fmt.Sprintf("api.certificate: %v ends, or has ended, at %s: clients refuse it then", c.Certificate, c.Identity().Expiry().Local().Format(time.RFC3339)),
			Cost: "gleam --address and gleam group tree do not reach this switch", Remedy: "issue a new one",
		})
	}
	if running != nil {
		return found
	}
	if missing := privilege.Missing(); len(missing) > 0 {
		found = append(found, checks.Finding{
			Check: checkCapabilities, Text: fmt.Sprintf("gleamd does not start with the privileges of this process, which lacks %s", strings.Join(missing, ", ")),
			Cost: "a gleamd that this user starts ends at once", Remedy: "run it as root",
		})
	}
	return found
}

// EndsSoon reports that the certificate of an API over TCP has ended, or ends within a week.
func EndsSoon(c *config.API) bool { return time.Until(c.Identity().Expiry()) < 7*24*time.Hour }
