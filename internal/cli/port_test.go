// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
)

// A port that does not work has the reason beside its state.
func TestPortStates(t *testing.T) {
	for want, p := range map[string]api.Port{
		"up": {State: api.PortOpen, Up: true}, "blocked": {State: api.PortOpen, Blocked: true},
		"unheard: none has arrived": {State: api.PortOpen, Up: true, Unheard: "none has arrived"}, "refused: no Ethernet": {State: "refused", Reason: "no Ethernet"},
	} {
		var b strings.Builder
		if portSummary(&b, &p); !strings.Contains(b.String(), "\nstate\t"+want+"\n") {
			t.Errorf("want %s: %s", want, b.String())
		}
	}
}
