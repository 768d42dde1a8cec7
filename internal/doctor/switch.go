// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
)

// SwitchOptions say what is looked at.
type SwitchOptions struct {
	Config string // file of gleamd's configuration
	Client *api.Client
	// Remote means that Client is that of another machine: nothing here is looked at.
	Remote bool
	// NoPackets has it send no packets to members and masters.
	NoPackets bool
}

// answers is what gleamd has said.
type answers struct {
	version  *api.Version
	ports    []api.Port
	groups   []api.Group
	topology *api.Topology
	stats    *api.Stats
}

// Switch looks at a switch: at this machine in the network namespace of the calling thread, with
// gleamd running or not, or at another machine's gleamd.
func Switch(ctx context.Context, o SwitchOptions) (*Report, error) {
	return thisMachine().examine(ctx, o)
}

func (m *machine) examine(ctx context.Context, o SwitchOptions) (*Report, error) {
	r := &Report{}
	a, err := ask(ctx, o.Client)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	switch {
	case err == nil:
		r.Gleamd = a.version.Version
		r.add("gleamd")
	case o.Remote:
		return nil, err
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EACCES):
		r.add("gleamd", Finding{Severity: Warning, Text: err.Error(), Cost: "what gleamd knows of groups, members and ports is not looked at", Remedy: "type it as root, or as a member of the group gleam"})
	default:
		r.skip("gleamd", err.Error())
	}
	var cfg *config.Config
	if !o.Remote {
		cfg = m.examineHere(r, o, a)
	}
	if a != nil {
		if cfg == nil { // else the machine's checks have said so
			var o checks.Outcome
			checks.CheckGuards(&o, guarded(a.ports, time.Now()))
			r.take(&o)
			r.add(checks.CheckPortGuard)
		}
		checkPorts(r, a.ports, a.groups, time.Now(), cfg, o.Config)
		examineGleamd(r, a)
	}
	if a != nil && !o.Remote {
		m.examineWays(r, o, a)
	}
	return r.finish(), nil
}

// examineHere looks at this machine. The configuration is nil if it cannot be read.
func (m *machine) examineHere(r *Report, o SwitchOptions, a *answers) *config.Config {
	cfg := checkConfig(r, o.Config)
	if cfg == nil {
		return nil
	}
	checkFiles(r, o.Config, cfg)
	var running *Running
	if a != nil {
		running = &Running{Version: a.version.Version, Pid: a.version.Pid, Ports: a.ports}
	}
	r.take(m.start(cfg, running))
	for _, name := range startChecks {
		r.add(name)
	}
	if a == nil {
		return cfg
	}
	if m.Elsewhere {
		r.skip("neighbours", checks.NotHere)
	} else if n, err := readNetwork(); err != nil {
		r.skip("neighbours", err.Error())
	} else {
		checkNeighbours(r, n, membersOf(a.groups), cfg.UnconfirmedMoves != config.MoveFollow)
	}
	return cfg
}

// examineGleamd looks at what gleamd says.
func examineGleamd(r *Report, a *answers) {
	if s := a.stats.Control.State; s != nil && s.Failing != "" {
		r.add("state-file", Finding{Severity: Error, Text: "groups are not kept over a restart: " + s.Failing, Cost: "no members are taken, and a restart now undoes the changes that wait to be written", Remedy: "make room on that disk, or its folder writable for gleamd's user; the write is tried again by itself"})
	} else if s != nil {
		r.add("state-file")
	}
	checkGroups(r, a.groups, time.Now())
	checkSwitches(r, a.topology)
}

// examineWays asks members and masters.
func (m *machine) examineWays(r *Report, o SwitchOptions, a *answers) {
	skip := func(why string) {
		r.skip("path-mtu", why)
		r.skip("clock-skew", why)
	}
	if m.Elsewhere {
		skip(checks.NotHere)
		return
	}
	if o.NoPackets {
		skip("no packets are to be sent (--no-packets)")
		return
	}
	p, err := openPinger()
	if err != nil {
		skip(err.Error())
		return
	}
	defer p.close()
	checkPaths(r, p, membersOf(a.groups))
	checkSkew(r, p, a.groups)
}

// ask has gleamd say what it knows.
func ask(ctx context.Context, c *api.Client) (a *answers, err error) {
	a = &answers{}
	if a.version, err = c.Version(ctx); err != nil {
		return nil, err
	}
	if a.groups, err = c.Groups(ctx); err != nil {
		return nil, err
	}
	if a.ports, err = c.Ports(ctx); err != nil {
		return nil, err
	}
	if a.topology, err = c.Topology(ctx); err != nil {
		return nil, err
	}
	if a.stats, err = c.Stats(ctx); err != nil {
		return nil, err
	}
	return a, nil
}
