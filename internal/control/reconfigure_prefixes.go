// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/doctor/checks"
)

// A reload of the group prefixes. The XDP programs and the workers, which answer ARP and ND,
// have them, and the registrar, which takes registrations. The other groups are not touched.

// prefixesChanged reports whether the reload changes the group prefixes. Their order counts
// nowhere.
func (r *reconfiguration) prefixesChanged() bool {
	return len(added(r.now.GroupPrefixes, r.next.GroupPrefixes))+len(added(r.next.GroupPrefixes, r.now.GroupPrefixes)) > 0
}

// added returns the prefixes of next that are not in now.
func added(now, next []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(next), func(p netip.Prefix) bool { return slices.Contains(now, p) })
}

// planPrefixes finds the groups that end with their prefixes, which needs force.
func (r *reconfiguration) planPrefixes() error {
	if !r.prefixesChanged() {
		return nil
	}
	groups, err := r.e.control.registrar.CheckPrefixes(r.next.GroupPrefixes)
	switch {
	case err != nil:
		return &config.Error{Key: "group_prefixes", Reason: err.Error()}
	case len(groups) > 0 && !r.force:
		return &config.Error{Key: "group_prefixes", Reason: fmt.Sprintf("%d groups are in none of these prefixes: %s: end them first, or have them ended by gleam reload --force", len(groups), someOf(groups))}
	}
	r.lost.Groups = groups
	return nil
}

// checkHosts returns an error that names members whose addresses are in prefixes that are new.
func (r *reconfiguration) checkHosts() error {
	fresh := added(r.now.GroupPrefixes, r.next.GroupPrefixes)
	if len(fresh) == 0 {
		return nil
	}
	var errs []error
	for _, p := range fresh {
		var members []netip.Addr
		for h := range r.e.control.dir.hosts.All() {
			if p.Contains(h.IP()) && h.IsMember() {
				members = append(members, h.IP())
			}
		}
		if len(members) > 0 {
			slices.SortFunc(members, netip.Addr.Compare)
			errs = append(errs, &config.Error{Key: "group_prefixes", Reason: fmt.Sprintf("%s holds the addresses of members: %s: a prefix in which no host has an address", p, someOf(members))})
		}
	}
	return errors.Join(errs...)
}

// checkMachine finds what on this machine keeps groups of new prefixes from working. Hosts with addresses in them are an error.
func (r *reconfiguration) checkMachine() error {
	fresh := added(r.now.GroupPrefixes, r.next.GroupPrefixes)
	if len(fresh) == 0 {
		return nil
	}
	if err := r.e.plane.Within(func() (err error) {
		r.found, err = checks.Prefixes(r.next.Ports, fresh)
		return err
	}); err != nil {
		return fmt.Errorf("group_prefixes: addresses and routes are not checked: %w", err)
	}
	for _, f := range r.found {
		if f.Fatal {
			return &config.Error{Key: "group_prefixes", Reason: f.String()}
		}
	}
	return nil
}

// maxListed bounds the addresses in a message.
const maxListed = 16

// someOf returns addresses as text, the first ones if they are many.
func someOf(list []netip.Addr) string {
	var b strings.Builder
	for i, ip := range list {
		if i == maxListed {
			fmt.Fprintf(&b, " and %d more", len(list)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(ip.String())
	}
	return b.String()
}

// applyPrefixes runs on the control loop. After an error nothing has changed.
func (r *reconfiguration) applyPrefixes() error {
	if !r.prefixesChanged() {
		return nil
	}
	if err := r.planPrefixes(); err != nil { // groups may have come since
		return err
	}
	c := r.e.control
	if err := c.plane.SetGroupPrefixes(r.next.GroupPrefixes); err != nil {
		return err
	}
	err := c.registrar.SetPrefixes(c.now(), r.next.GroupPrefixes, &c.out)
	c.sendOutput()
	if err != nil {
		return err
	}
	c.notify(len(r.lost.Groups) > 0, "the group prefixes have changed", "prefixes", r.next.GroupPrefixes, "groups_ended", len(r.lost.Groups))
	return nil
}
