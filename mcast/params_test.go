// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// TestGroupParamsCheck: Check refuses a parameter that is wrong, by itself or beside
// another one, and accepts right ones up to their bounds.
func TestGroupParamsCheck(t *testing.T) {
	const once, all = 67108864 * time.Nanosecond, 7 * 67108864 * time.Nanosecond // exponent 14, 7 retries
	good := GroupParams{QPN: 0x10, PathMTU: 256, Policy: Evict, DeadAfter: 100 * time.Millisecond, LagPSNs: MaxLagPSNs, LagTime: time.Hour, SenderTimeout: 14, SenderRetries: 7}
	for _, c := range []struct {
		change   func(*GroupParams)
		param    Param
		conflict bool
		bound    time.Duration
	}{
		{change: func(*GroupParams) {}},
		{change: func(p *GroupParams) { p.QPN = 0xF }, param: ParamQPN},
		{change: func(p *GroupParams) { p.QPN = 0xFFFFFE }},
		{change: func(p *GroupParams) { p.PathMTU = 1500 }, param: ParamPathMTU},
		{change: func(p *GroupParams) { p.Policy = Quorum + 1 }, param: ParamPolicy},
		{change: func(p *GroupParams) { p.Policy = Quorum }, param: ParamQuorum, conflict: true},
		{change: func(p *GroupParams) { p.Policy, p.Quorum = Quorum, 1 }},
		{change: func(p *GroupParams) { p.Policy, p.Quorum = Quorum, 3 }},
		{change: func(p *GroupParams) { p.Policy, p.Quorum = Quorum, 4 }, param: ParamQuorum, conflict: true},
		{change: func(p *GroupParams) { p.Quorum = 1 }, param: ParamQuorum, conflict: true},
		{change: func(p *GroupParams) { p.Policy = Strict }, param: ParamPolicy, conflict: true},
		{change: func(p *GroupParams) { p.Policy, p.LagPSNs = Strict, 0 }, param: ParamPolicy, conflict: true},
		{change: func(p *GroupParams) { p.Policy, p.LagTime = Strict, 0 }, param: ParamPolicy, conflict: true},
		{change: func(p *GroupParams) { p.Policy, p.LagPSNs, p.LagTime = Strict, 0, 0 }},
		{change: func(p *GroupParams) { p.LagPSNs = -1 }, param: ParamLagPSNs},
		{change: func(p *GroupParams) { p.LagPSNs++ }, param: ParamLagPSNs, conflict: true},
		{change: func(p *GroupParams) { p.LagTime = -1 }, param: ParamLagTime},
		{change: func(p *GroupParams) { p.DeadAfter = -1 }, param: ParamDeadAfter},
		{change: func(p *GroupParams) { p.DeadAfter = 0 }},
		{change: func(p *GroupParams) { p.DeadAfter = once }, param: ParamDeadAfter, conflict: true, bound: once},
		{change: func(p *GroupParams) { p.DeadAfter = once + 1 }},
		{change: func(p *GroupParams) { p.DeadAfter = all - 1 }},
		{change: func(p *GroupParams) { p.DeadAfter = all }, param: ParamDeadAfter, conflict: true, bound: all},
		{change: func(p *GroupParams) { p.DeadAfter, p.SenderTimeout, p.SenderRetries = all, 0, 0 }},
		{change: func(p *GroupParams) { p.SenderTimeout = 32 }, param: ParamSenderTimeout},
		{change: func(p *GroupParams) { p.DeadAfter, p.SenderTimeout = 0, 31 }},
		{change: func(p *GroupParams) { p.SenderTimeout = 0 }, param: ParamSenderTimeout},
		{change: func(p *GroupParams) { p.SenderRetries = 0 }, param: ParamSenderTimeout},
		{change: func(p *GroupParams) { p.SenderRetries = 8 }, param: ParamSenderRetries},
	} {
		p := good
		c.change(&p)
		switch e := p.Check(3); {
		case (e == nil) != (c.param == ""):
			t.Errorf("%+v: %v", p, e)
		case e != nil && (e.Param != c.param || e.Conflict != c.conflict || e.Bound != c.bound || e.Problem == ""):
			t.Errorf("%+v: %+v, want %+v", p, e, c)
		}
	}
}

// TestSilence: how long a silent receiver is waited for, by policy and by what a master says.
func TestSilence(t *testing.T) {
	for _, c := range []struct {
		params         GroupParams
		silent, allOfs time.Duration
	}{
		{GroupParams{}, StrictDeadAfter, StrictDeadAfter},
		{GroupParams{SenderTimeout: 14, SenderRetries: 7}, StrictDeadAfter, StrictDeadAfter},
		{GroupParams{SenderTimeout: 20, SenderRetries: 7}, 8 * rocev2.AckTimeout(20), 8 * rocev2.AckTimeout(20)},
		{GroupParams{DeadAfter: time.Second}, time.Second, StrictDeadAfter},
		{GroupParams{DeadAfter: time.Minute, SenderTimeout: 14, SenderRetries: 7}, time.Minute, time.Minute},
		{GroupParams{DeadAfter: NeverDead, SenderTimeout: 14, SenderRetries: 7}, 0, 0},
		{GroupParams{Policy: Evict}, 0, 0},
		{GroupParams{Policy: Evict, DeadAfter: time.Second}, time.Second, StrictDeadAfter},
		{GroupParams{Policy: Quorum, Quorum: 1, DeadAfter: time.Minute}, time.Minute, time.Minute},
		{GroupParams{Policy: Quorum, Quorum: 1, DeadAfter: NeverDead}, 0, 0},
	} {
		p := c.params
		if p.Silence() != c.silent || p.SilenceOfAll() != c.allOfs {
			t.Errorf("%+v: %v, %v of all; want %v, %v", p, p.Silence(), p.SilenceOfAll(), c.silent, c.allOfs)
		}
		p.QPN, p.PathMTU = DefaultQPN, 1024
		if e := p.Check(2); e != nil {
			t.Errorf("%+v: %v", p, e)
		}
		p.WaitForEver()
		if p.Silence() != 0 || p.SilenceOfAll() != 0 {
			t.Errorf("%+v: %v, want never", p, p.Silence())
		}
	}
}
