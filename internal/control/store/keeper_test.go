// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/control/statefile"
)

// TestStartedEvent: the event of the start says what is known of the time before.
func TestStartedEvent(t *testing.T) {
	groups := &statefile.State{}
	groups.Groups = map[netip.Addr]*statefile.Group{netip.MustParseAddr("10.77.254.1"): nil, netip.MustParseAddr("10.77.254.2"): nil}
	for want, k := range map[string]*Keeper{
		"gleamd 1.2: the configuration has no key state, so groups end with gleamd": nil,
		"gleamd 1.2: there was no state file":                                       {found: &statefile.Found{New: true, State: &statefile.State{}}},
		"gleamd 1.2: the state file has groups of before: 2":                        {found: &statefile.Found{State: groups}},
		"gleamd 1.2: the state file was damaged, so groups of before are lost; it is f.damaged now": {
			found: &statefile.Found{Damaged: errors.New("bad"), DamagedFile: "f.damaged", State: &statefile.State{}}},
	} {
		if e := k.StartedEvent(api.Version{Version: "1.2", Commit: "unknown"}); e.Kind != api.EventStarted || e.Reason != want {
			t.Errorf("%+v, want %s", e, want)
		}
	}
}
