// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// GroupParams are what a registration chooses beside the group's address, members
// and windows. Envelopes, the API, the command line and the libraries for Go and C
// offer all of them, and refuse them in the words of Check.
type GroupParams struct {
	QPN           rocev2.QPN    // virtual: every member connects to it
	PathMTU       int           // bytes: 256, 512, 1024, 2048 or 4096
	Policy        Policy        // effect of a member that fails or is silent
	Quorum        int           // Policy Quorum: receivers that must have the acknowledged data, 1 or more; else 0
	DeadAfter     time.Duration // silence, while others move, after which a receiver that lags is removed or fails the group; 0: StrictDeadAfter under Strict, else never; NeverDead: never
	LagPSNs       int           // Evict, Quorum: lag in PSNs behind another receiver beyond which a receiver is removed; 0: no limit
	LagTime       time.Duration // Evict, Quorum: time for which a receiver may lack what another one has; 0: no limit
	SenderTimeout uint8         // exponent of the senders' ACK timeout, 4.096 µs * 2^n, with SenderRetries; DeadAfter must fit between them; 0: not known
	SenderRetries uint8         // retry count of the senders' queue pairs
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

// NeverDead is the DeadAfter by which a silent receiver is waited for for ever.
const NeverDead time.Duration = 1<<63 - 1

// StrictDeadAfter is the least default of DeadAfter under Strict, where a silent receiver costs all
// others the group. A host that is well is silent for less: receivers that are not ready say so, a
// garbage collection, a link that comes up again and a restart of the switch take less than a few
// seconds. A program that waits for longer than this looks hung to its operator.
const StrictDeadAfter = 10 * time.Second

// SenderTimeoutTotal is the time after which a sender's queue pair fails if it gets no answer: its
// timeout, once for each try. 0 if they are not declared.
func (p *GroupParams) SenderTimeoutTotal() time.Duration {
	if p.SenderTimeout == 0 {
		return 0
	}
	return rocev2.AckTimeout(p.SenderTimeout) * time.Duration(p.SenderRetries+1)
}

// Silence is how long a silent receiver is waited for; 0: for ever. The default under Strict is longer
// than the senders' patience: many of their queue pairs have no end of it (rdma_rxe's 7 retries), and
// where they have one it has passed, and nobody is surprised by the end of the group.
func (p *GroupParams) Silence() time.Duration {
	switch {
	case p.DeadAfter == NeverDead:
		return 0
	case p.DeadAfter == 0 && p.Policy == Strict:
		return max(StrictDeadAfter, p.SenderTimeoutTotal())
	}
	return p.DeadAfter
}

// SilenceOfAll is how long receivers are waited for that are all silent, under every policy; 0: for ever.
func (p *GroupParams) SilenceOfAll() time.Duration {
	if s := p.Silence(); s > 0 {
		return max(s, StrictDeadAfter)
	}
	return 0
}

// WaitForEver makes DeadAfter never. Under policies without a default on the wire that is 0, which
// switches of all releases know.
func (p *GroupParams) WaitForEver() {
	p.DeadAfter = 0
	if p.Policy == Strict {
		p.DeadAfter = NeverDead
	}
}

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
		return &ParamError{Param: ParamDeadAfter, Problem: fmt.Sprintf("%v is negative", p.DeadAfter)}
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
// after its retries. Under Strict it may be first: the group removes nobody for it to miss.
func (p *GroupParams) checkDeadAfter() *ParamError {
	if p.DeadAfter == 0 || p.DeadAfter == NeverDead || p.SenderTimeout == 0 {
		return nil
	}
	once := rocev2.AckTimeout(p.SenderTimeout)
	bad := func(bound time.Duration, what string) *ParamError {
		return &ParamError{Param: ParamDeadAfter, Problem: fmt.Sprintf("%v is %s", p.DeadAfter, what), Conflict: true, Bound: bound}
	}
	if p.DeadAfter <= once {
		return bad(once, fmt.Sprintf("not longer than a sender's timeout of %v: a receiver that lost a last packet would be taken for dead", once))
	}
	if all := once * time.Duration(p.SenderRetries); p.DeadAfter >= all && p.Policy != Strict {
		return bad(all, fmt.Sprintf("not shorter than a sender's timeout times its retries, %v: the sender would give up first", all))
	}
	return nil
}
