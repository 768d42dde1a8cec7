// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"net/http"
	"net/netip"
)

// Reloaded is the result of a reload of the configuration. Each key of the file is in one
// of the lists Applied, Unchanged and NeedsRestart.
type Reloaded struct {
	Keys         []uint16       `json:"keys"`          // ids of the keys of envelopes that count now
	Applied      []string       `json:"applied"`       // configuration keys whose changes are in effect now
	Unchanged    []string       `json:"unchanged"`     // keys that have not changed
	NeedsRestart []NeedsRestart `json:"needs_restart"` // keys that have changed, and stay as they were
	MembersLost  int            `json:"members_lost"`  // hosts that were members behind ports that are removed now
	GroupsEnded  []netip.Addr   `json:"groups_ended"`  // groups that are in none of the group prefixes any more
}

// NeedsRestart is a key of the configuration whose change a reload does not apply.
type NeedsRestart struct {
	Key    string `json:"key"`
	Reason string `json:"reason"`
}

// Reload asks for a reload of the configuration.
type Reload struct {
	// Force removes ports although members are behind them, and group prefixes although there
	// are groups in them.
	Force bool `json:"force"`
}

// ReasonReload means that the configuration cannot be reloaded: the one of before counts.
const ReasonReload = "cannot_reload"

// Reloader is a Backend that can read its configuration again.
type Reloader interface {
	// Reload applies the keys that need no restart. With an error it changes none.
	Reload(Reload) (*Reloaded, error)
}

func (h *handler) reload(r *http.Request, _ string) (any, error) {
	var q Reload
	if r.ContentLength != 0 { // without a body: as at SIGHUP
		if err := decode(r.Body, &q, "reload"); err != nil {
			return nil, refuse(http.StatusBadRequest, "%s", err)
		}
	}
	how := ""
	if q.Force {
		how = ", by force"
	}
	describe(r, netip.Addr{}, "reload the configuration%s", how)
	b, ok := h.backend.(Reloader)
	if !ok {
		return nil, &Error{Message: "this switch has no configuration file to reload", Reason: ReasonReload}
	}
	x, err := b.Reload(q)
	if err != nil {
		return nil, &Error{Message: err.Error(), Reason: ReasonReload}
	}
	x.Keys, x.Applied, x.Unchanged, x.NeedsRestart = notNil(x.Keys), notNil(x.Applied), notNil(x.Unchanged), notNil(x.NeedsRestart)
	x.GroupsEnded = notNil(x.GroupsEnded)
	return x, nil
}

// Reload has the daemon read its configuration file again, as SIGHUP does.
func (c *Client) Reload(ctx context.Context, q Reload) (*Reloaded, error) {
	var x Reloaded
	if err := c.call(ctx, "POST", "/v1/reload", &q, &x); err != nil {
		return nil, err
	}
	return &x, nil
}
