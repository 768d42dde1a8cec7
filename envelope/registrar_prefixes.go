// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// checkPrefixes reports why prefixes cannot be those of GroupIPs.
func checkPrefixes(prefixes []netip.Prefix) error {
	if len(prefixes) == 0 {
		return fmt.Errorf("no group prefix; configure at least one")
	}
	for _, p := range prefixes {
		if !p.IsValid() || p.Addr().Is4In6() || !unicast(p.Addr()) && p.Bits() > 0 {
			return fmt.Errorf("group prefix %s: must be a unicast prefix", p)
		}
	}
	return nil
}

// inPrefixes reports whether ip is in one of prefixes.
func inPrefixes(prefixes []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// CheckPrefixes returns why SetPrefixes would refuse prefixes, or the groups that it would
// end, those that are being registered included, in the order of their addresses.
func (r *Registrar) CheckPrefixes(prefixes []netip.Prefix) (unserved []netip.Addr, err error) {
	if err := checkPrefixes(prefixes); err != nil {
		return nil, err
	}
	for _, groups := range []map[netip.Addr]*group{r.groups, r.locating} {
		for ip, g := range groups {
			if !inPrefixes(prefixes, ip) {
				unserved = append(unserved, ip)
				continue
			}
			for i := range g.reg.Members {
				if m := g.reg.Members[i].IP; inPrefixes(prefixes, m) {
					return nil, fmt.Errorf("%s, a member of group %s, would have a group's address: choose another prefix, or end the group first", m, ip)
				}
			}
		}
	}
	slices.SortFunc(unserved, netip.Addr.Compare)
	return slices.Compact(unserved), nil // a group may be in both
}

// SetPrefixes replaces the prefixes of GroupIPs. Groups that are in none of them end, in the
// whole tree if they have one; the others go on. After an error nothing has changed.
func (r *Registrar) SetPrefixes(now time.Duration, prefixes []netip.Prefix, out *Output) error {
	out.reset()
	r.setTime(now)
	unserved, err := r.CheckPrefixes(prefixes)
	if err != nil {
		return err
	}
	r.cfg.Prefixes = slices.Clone(prefixes)
	for _, ip := range unserved {
		r.endHere(now, ip, Problem{Reason: NotGroupPrefix}, Withdrawn, out)
	}
	return nil
}

// endHere ends a group since this switch has to: its registration that is under way is
// refused for p, the installed one ends for why.
func (r *Registrar) endHere(now time.Duration, ip netip.Addr, p Problem, why EndReason, out *Output) {
	l, g := r.locating[ip], r.groups[ip]
	if l != nil {
		r.located(ip)
		r.abandon(now, l, out)
		r.reject(l, p, out)
	}
	if g != nil {
		r.removeGroup(now, g, why, true, out)
	}
}
