// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor looks for what keeps a switch, its groups or a host from working, or makes
// them slow: on this machine, at gleamd by its API, and on the way to members. Each finding has
// its cost and what repairs it. It changes nothing.
package doctor

import (
	"net/netip"
	"slices"

	"github.com/gleam-rdma/gleam/internal/doctor/checks"
)

// Severity says how bad a finding is.
type Severity string

// Severities.
const (
	Error   Severity = "error"   // the switch does not start, or a group or host does not work
	Warning Severity = "warning" // the switch works, but is slow, at risk, or does without something
	Note    Severity = "note"    // nothing is wrong with switch and groups: exit code 0
)

// Finding is something that is wrong, with what it costs and what repairs it.
type Finding struct {
	Check    string     `json:"check"` // the check that has found it
	Severity Severity   `json:"severity"`
	Port     string     `json:"port,omitempty"`    // the port concerned
	Group    netip.Addr `json:"group,omitzero"`    // the group concerned
	Member   netip.Addr `json:"member,omitzero"`   // the member concerned
	Text     string     `json:"text"`              // what is wrong
	Cost     string     `json:"cost"`              // what comes of it
	Command  string     `json:"command,omitempty"` // the command that repairs it, for a shell with the necessary rights
	At       string     `json:"at,omitempty"`      // where Command is typed; empty: here
	Remedy   string     `json:"remedy,omitempty"`  // the remedy in words, where no command does it or more is to be known
}

// Checks are the names of all checks, in the order of docs/DOCTOR.md.
var Checks = append(startChecks[:len(startChecks):len(startChecks)],
	"gleamd", "config", "key-files", "ports", "xdp-mode",
	"groups", "neighbours", "path-mtu", "clock-skew", "switches", "interface", "loopback", "device", "route", "group-address", "switch-key", "qp-settings")

// States of a check.
const (
	OK      = "ok"      // nothing is wrong
	Found   = "found"   // findings of the check
	Skipped = "skipped" // the check could not look, or there was nothing to look at
)

// Result is the outcome of a check.
type Result struct {
	Check  string `json:"check"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"` // the reason why it was skipped
}

// Report is the outcome of all checks.
type Report struct {
	Gleamd   string    `json:"gleamd"` // version of the one that runs; empty: none answers
	Findings []Finding `json:"findings"`
	Checks   []Result  `json:"checks"`
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
}

// Exit codes of a report.
const (
	ExitClean    = 0
	ExitWarnings = 1
	ExitErrors   = 2
)

// ExitCode is that of a program which has made the report.
func (r *Report) ExitCode() int {
	switch {
	case r.Errors > 0:
		return ExitErrors
	case r.Warnings > 0:
		return ExitWarnings
	}
	return ExitClean
}

// add notes what a check has found; a check may be added to several times.
func (r *Report) add(check string, found ...Finding) {
	for i := range found {
		found[i].Check = check
	}
	r.Findings = append(r.Findings, found...)
	at := r.result(check)
	if len(found) > 0 {
		at.State, at.Reason = Found, ""
	} else if at.State == "" {
		at.State = OK
	}
}

// skip notes that a check has not looked, or not everywhere.
func (r *Report) skip(check, reason string) {
	if at := r.result(check); at.State == "" {
		at.State, at.Reason = Skipped, reason
	}
}

func (r *Report) result(check string) *Result {
	i := slices.IndexFunc(r.Checks, func(c Result) bool { return c.Check == check })
	if i < 0 {
		i = len(r.Checks)
		r.Checks = append(r.Checks, Result{Check: check})
	}
	return &r.Checks[i]
}

// finish sorts the findings, the worst first, and counts them.
func (r *Report) finish() *Report {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return rank(a.Severity) - rank(b.Severity) })
	r.Errors, r.Warnings = 0, 0
	for i := range r.Findings {
		switch r.Findings[i].Severity {
		case Error:
			r.Errors++
		case Warning:
			r.Warnings++
		}
	}
	if r.Findings == nil {
		r.Findings = []Finding{}
	}
	return r
}

func rank(s Severity) int {
	switch s {
	case Error:
		return 0
	case Warning:
		return 1
	}
	return 2
}

// take takes over what the checks of a switch's machine have found.
func (r *Report) take(o *checks.Outcome) {
	for i := range o.Findings {
		f := &o.Findings[i]
		x := Finding{Severity: Warning, Port: f.Port, Text: f.Text, Cost: f.Cost, Command: f.Command, Remedy: f.Remedy}
		switch {
		case f.Fatal || f.Severe:
			x.Severity = Error
		case f.Note:
			x.Severity = Note
		}
		if f.Fatal && x.Cost == "" {
			x.Cost = "gleamd does not start"
		}
		r.add(f.Check, x)
	}
	for _, s := range o.Skipped {
		r.skip(s.Check, s.Reason)
	}
}
