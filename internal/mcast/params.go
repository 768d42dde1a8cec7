// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/internal/rocev2"
)

// GroupParams are what a registration chooses beside the group's address, members
// and windows. Envelopes, the API, the command line and the libraries for Go and C
// offer all of them, and refuse them in the words of Check.
type GroupParams struct {
	QPN           rocev2.QPN // virtual: every member connects to it
	PathMTU       int        // bytes
	Policy        Policy
	Quorum        int           // receivers, with the policy Quorum
	DeadAfter     time.Duration // 0: never
	LagPSNs       int           // 0: no limit
	LagTime       time.Duration // 0: no limit
	SenderTimeout uint8         // exponent of the senders' ACK timeout, with SenderRetries; 0: not known
	SenderRetries uint8
}

// Param is one of GroupParams, by the name that errors have for it. Interfaces with
// names of their own translate it.
type Param string

// The parameters.
const (
	ParamQPN           Param = "virtual QPN"
	ParamPathMTU       Param = "path MTU"
	ParamPolicy        Param = "policy"
	ParamQuorum        Param = "quorum"
	ParamDeadAfter     Param = "dead_after"
	ParamLagPSNs       Param = "lag in PSNs"
	ParamLagTime       Param = "lag in time"
	ParamSenderTimeout Param = "sender's timeout"
	ParamSenderRetries Param = "sender's retries"
)

// MaxLagPSNs bounds LagPSNs: no requester has more in flight.
const MaxLagPSNs = 1 << 22

// ParamError says what is wrong with a parameter.
type ParamError struct {
	Param   Param
	Problem string // begins with the value
	// Conflict says that the value does not go with another one, or with the number
	// of receivers; else it is out of range by itself.
	Conflict bool
	// Bound is that of DeadAfter which a conflict with the sender's timeout breaks.
	Bound time.Duration
}

// Error names the parameter.
func (e *ParamError) Error() string { return string(e.Param) + " " + e.Problem }

// Check returns what is wrong with the parameters of a group with that number of receivers;
// nil if nothing is.
func (p *GroupParams) Check(receivers int) *ParamError {
	if e := p.checkRanges(); e != nil {
		return e
	}
	conflict := func(param Param, format string, args ...any) *ParamError {
		return &ParamError{Param: param, Problem: fmt.Sprintf(format, args...), Conflict: true}
	}
	switch {
	case p.Policy == Quorum && (p.Quorum < 1 || p.Quorum > receivers):
		return conflict(ParamQuorum, "%d: there are %d receivers beside the source", p.Quorum, receivers)
	case p.Policy != Quorum && p.Quorum != 0:
		return conflict(ParamQuorum, "%d: only with the policy quorum", p.Quorum)
	case p.Policy == Strict && (p.LagPSNs > 0 || p.LagTime > 0):
		return conflict(ParamPolicy, "strict removes nobody, so a lag limit makes no sense; take evict or quorum")
	}
	return p.checkDeadAfter()
}

func (p *GroupParams) checkRanges() *ParamError {
	switch {
	case !p.QPN.Valid():
		return &ParamError{Param: ParamQPN, Problem: fmt.Sprintf("%#x is no RC queue pair's number; 0x10 to 0xfffffe are", uint32(p.QPN))}
	case !rocev2.ValidPathMTU(p.PathMTU):
		return &ParamError{Param: ParamPathMTU, Problem: fmt.Sprintf("%d: want %s", p.PathMTU, rocev2.PathMTUText)}
	case p.Policy > Quorum:
		return &ParamError{Param: ParamPolicy, Problem: fmt.Sprintf("%d is unknown", p.Policy)}
	case p.DeadAfter < 0:
		return &ParamError{Param: ParamDeadAfter, Problem: fmt.Sprintf("%v is negative; 0 is never", p.DeadAfter)}
	case p.LagPSNs < 0 || p.LagPSNs > MaxLagPSNs:
		return &ParamError{Param: ParamLagPSNs, Problem: fmt.Sprintf("%d is not in 0 to %d", p.LagPSNs, MaxLagPSNs), Conflict: p.LagPSNs > 0}
	case p.LagTime < 0:
		return &ParamError{Param: ParamLagTime, Problem: fmt.Sprintf("%v is negative; 0 is no limit", p.LagTime)}
	case p.SenderTimeout > 31:
		return &ParamError{Param: ParamSenderTimeout, Problem: fmt.Sprintf("%d is not in 1 to 31 (4.096 us * 2^n)", p.SenderTimeout)}
	case p.SenderRetries > 7:
		return &ParamError{Param: ParamSenderRetries, Problem: fmt.Sprintf("%d is not in 1 to 7", p.SenderRetries)}
	case (p.SenderTimeout == 0) != (p.SenderRetries == 0):
		return &ParamError{Param: ParamSenderTimeout, Problem: "goes with the retries: give both, or neither"}
	}
	return nil
}

// checkDeadAfter compares the wait for a silent receiver with the senders' timeout. A
// receiver that lost a last packet is silent for one timeout, and a sender gives up
// after its retries.
func (p *GroupParams) checkDeadAfter() *ParamError {
	if p.DeadAfter == 0 || p.SenderTimeout == 0 {
		return nil
	}
	once := rocev2.AckTimeout(p.SenderTimeout)
	bad := func(bound time.Duration, what string) *ParamError {
		return &ParamError{Param: ParamDeadAfter, Problem: fmt.Sprintf("%v is %s", p.DeadAfter, what), Conflict: true, Bound: bound}
	}
	if p.DeadAfter <= once {
		return bad(once, fmt.Sprintf("not longer than a sender's timeout of %v: a receiver that lost a last packet would be taken for dead", once))
	}
	if all := once * time.Duration(p.SenderRetries); p.DeadAfter >= all {
		return bad(all, fmt.Sprintf("not shorter than a sender's timeout times its retries, %v: the sender would give up first", all))
	}
	return nil
}

// params are those of a group that this switch is to serve.
func (s *GroupSpec) params() GroupParams {
	return GroupParams{
		QPN: s.QPN, PathMTU: s.PMTU, Policy: s.Policy, Quorum: s.Quorum, DeadAfter: s.DeadAfter, LagPSNs: s.LagPSNs, LagTime: s.LagTime,
	}
}
