// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package config

import "testing"

// The mode of a port is its own one, or that of all.
func TestXDPModeOf(t *testing.T) {
	for _, c := range []struct{ all, own, want XDPMode }{
		{XDPAuto, XDPDefault, XDPAuto}, {XDPGeneric, "", XDPGeneric}, {XDPGeneric, XDPDefault, XDPGeneric},
		{XDPAuto, XDPGeneric, XDPGeneric}, {XDPGeneric, XDPAuto, XDPAuto}, {XDPGeneric, XDPNative, XDPNative},
	} {
		cfg := Default()
		cfg.XDP.Mode = c.all
		if got := cfg.XDPModeOf(&Port{Name: "p1", XDP: PortXDP{Mode: c.own}}); got != c.want {
			t.Errorf("%s, and %q at the port: %s, want %s", c.all, c.own, got, c.want)
		}
	}
}
