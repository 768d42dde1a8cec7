// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package checks has the checks of a machine as a switch: what keeps one from working here, or
// makes it slow. gleamd --check, gleam doctor and the log of a start print what they find: none
// of the three knows what the others do not. They change nothing.
package checks

import (
	"fmt"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/control/neighbours"
)

// Finding is a property of this machine that keeps the switch, or groups, from working.
type Finding struct {
	Check   string // the check that has found it
	Fatal   bool   // the switch does not start
	Severe  bool   // true: the switch starts, and groups or hosts do not work
	Note    bool   // nothing is wrong
	Port    string // empty: not about one port
	Text    string
	Cost    string // what comes of it; empty if Text contains it
	Command string // repairs it, for a shell
	Remedy  string // the remedy in words; empty if Text or Command contains it

	watched bool // a running switch watches it, and says so itself
	learnt  bool // true: it rests on what the machine has learnt of hosts: no reason to end at a start
}

// String returns the finding in a line.
func (f Finding) String() string {
	s := f.Text
	if f.Port != "" {
		s = "port " + f.Port + ": " + s
	}
	if r := f.Repair(); r != "" {
		s += ": " + r
	}
	return s
}

// Repair returns command and remedy in a line.
func (f *Finding) Repair() string {
	if f.Command != "" && f.Remedy != "" {
		return f.Command + ", " + f.Remedy
	}
	return f.Command + f.Remedy
}

// ForLog reports whether a switch that starts is to say so: it watches some things itself, and
// does not start with others.
func (f *Finding) ForLog() bool { return !f.watched && (!f.Fatal || f.learnt) }

// EndsStart reports whether the finding is the only one to say that the switch does not start.
func (f *Finding) EndsStart() bool { return f.Fatal && !f.learnt && f.Check == CheckPrefixes }

// Names of the checks.
const (
	CheckKernel     = "kernel"
	CheckNamespace  = "network-namespace"
	CheckInterfaces = "interfaces"
	CheckSwitchID   = "switch-id"
	CheckLinks      = "links"
	CheckXDP        = "xdp-programs"
	CheckMTU        = "mtu"
	CheckRoutes     = "routes"
	CheckPrefixes   = "group-prefixes"
	CheckPortGuard  = "port-guard"
	CheckForwarding = "forwarding"
	CheckOffloads   = "offloads"
	CheckNICs       = "nics"
	CheckFastPath   = "fast-path"
	CheckHugePages  = "huge-pages"
	CheckMemlock    = "memlock"
	CheckClock      = "clock"
	CheckWorkers    = "worker-cpus"
	CheckInterrupts = "interrupts"
)

// All are the names of all checks.
var All = []string{
	CheckKernel, CheckNamespace, CheckInterfaces, CheckSwitchID, CheckLinks, CheckXDP, CheckMTU, CheckRoutes, CheckPrefixes, CheckPortGuard, CheckForwarding, CheckOffloads, CheckNICs, CheckFastPath,
	CheckHugePages, CheckMemlock, CheckClock, CheckWorkers, CheckInterrupts,
}

// Outcome is what checks have found.
type Outcome struct {
	Findings []Finding
	Skipped  []Skipped
}

// Skipped is a check that has not looked, or not everywhere.
type Skipped struct{ Check, Reason string }

func (o *Outcome) add(check string, found ...Finding) {
	for i := range found {
		found[i].Check = check
	}
	o.Findings = append(o.Findings, found...)
}

func (o *Outcome) skip(check, reason string) {
	o.Skipped = append(o.Skipped, Skipped{check, reason})
}

// NotHere is why what gleamd has, and reaches, in its network namespace is not looked at.
const NotHere = "gleamd is in another network namespace"

// Run looks for problems that would keep a switch with configuration cfg from working here, in
// the network namespace of the calling thread. It changes nothing and needs no privilege.
func (m *Machine) Run(cfg *config.Config) *Outcome {
	o := &Outcome{}
	m.checkKernel(o)
	if len(cfg.Switch.Keys) > 0 {
		if _, err := neighbours.ID(&cfg.Switch); err != nil {
			o.add(CheckSwitchID, Finding{Fatal: true, Text: err.Error()})
		}
	}
	if m.Elsewhere {
		o.add(CheckNamespace, Finding{
			Text: fmt.Sprintf("gleamd (pid %d) is in another network namespace", m.Pid), Cost: "interfaces, addresses, routes and neighbours are not looked at: those here are not gleamd's",
			Command: fmt.Sprintf("nsenter --net=/proc/%d/ns/net gleam doctor", m.Pid), Remedy: "with the options of this command",
		})
		for _, c := range []string{CheckInterfaces, CheckLinks, CheckXDP, CheckMTU, CheckRoutes, CheckPrefixes, CheckForwarding, CheckOffloads, CheckNICs, CheckFastPath, CheckInterrupts} {
			o.skip(c, NotHere)
		}
	} else if s, err := readHostNetwork(); err != nil {
		o.add(CheckRoutes, Finding{Text: fmt.Sprintf("interfaces, addresses and routes are not checked: %v", err)})
	} else {
		s.checkInterfaces(o, cfg)
		o.Findings = append(o.Findings, s.check(cfg)...)
		m.checkForwarding(o, cfg, s)
		m.checkOffloads(o, cfg, s)
		m.checkNICs(o, cfg, s)
		o.Findings = append(o.Findings, s.checkFastPath(cfg)...)
	}
	m.checkHugePages(o)
	m.checkMemlock(o, cfg)
	m.CheckClock(o)
	m.checkWorkers(o, cfg)
	if !m.Elsewhere {
		m.checkInterrupts(o, cfg)
	}
	return o
}

// checkInterfaces checks that the ports have interfaces, of kinds that can be ports, each one
// of its own.
func (s *hostNetwork) checkInterfaces(o *Outcome, cfg *config.Config) {
	for i := range cfg.Ports {
		p := &cfg.Ports[i]
		if _, err := s.links.Find(p, cfg.XDPModeOf(p)); err != nil {
			o.add(CheckInterfaces, Finding{Fatal: true, Text: err.Error()})
		}
	}
	if err := s.links.CheckTogether(cfg.Ports); err != nil {
		o.add(CheckInterfaces, Finding{Fatal: true, Text: err.Error()})
	}
}
