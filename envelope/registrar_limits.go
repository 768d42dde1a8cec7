// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import "time"

// Limits are the bounds of registrations that may change while the switch runs.
type Limits struct {
	MaxGroups, MaxMembers   int // the bounds of both; not more than at the start
	MaxLease, LocateTimeout time.Duration
}

// SetLimits replaces the limits. What is registered stays, with the lease that it has, even
// if it is beyond them; what is new is refused.
func (r *Registrar) SetLimits(l Limits) {
	c := &r.cfg
	c.MaxGroups, c.MaxMembers, c.MaxLease, c.LocateTimeout = l.MaxGroups, l.MaxMembers, l.MaxLease, l.LocateTimeout
	c.DefaultLease = max(c.MinLease, min(time.Minute, l.MaxLease))
}
