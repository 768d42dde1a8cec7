// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"net/http"
	"net/netip"
)

// Reloaded is the result of a reload of the configuration.
type Reloaded struct {
	Keys         []uint16 `json:"keys"`          // ids of the keys of envelopes that count now
	NeedsRestart []string `json:"needs_restart"` // configuration keys that have changed and are not reloaded
}

// ReasonReload means that the configuration cannot be reloaded: the one of before counts.
const ReasonReload = "cannot_reload"

// Reloader is a Backend that can read its configuration again.
type Reloader interface {
	// Reload applies the keys that need no restart. With an error it changes none.
	Reload() (*Reloaded, error)
}

func (h *handler) reload(r *http.Request, _ string) (any, error) {
	describe(r, netip.Addr{}, "reload the configuration")
	b, ok := h.backend.(Reloader)
	if !ok {
		return nil, &Error{Message: "this switch has no configuration file to reload", Reason: ReasonReload}
	}
	x, err := b.Reload()
	if err != nil {
		return nil, &Error{Message: err.Error(), Reason: ReasonReload}
	}
	x.Keys, x.NeedsRestart = notNil(x.Keys), notNil(x.NeedsRestart)
	return x, nil
}

// Reload has the daemon read its configuration file again, as SIGHUP does.
func (c *Client) Reload(ctx context.Context) (*Reloaded, error) {
	var x Reloaded
	if err := c.call(ctx, "POST", "/v1/reload", nil, &x); err != nil {
		return nil, err
	}
	return &x, nil
}
