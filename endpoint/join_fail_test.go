// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/endpoint"
	"github.com/gleam-rdma/gleam/envelope"
)

func TestJoinFails(t *testing.T) {
	wrong := envelope.Auth{Keys: envelope.Keys{1: []byte(strings.Repeat("x", envelope.MinKeyLen))}, Send: 1}
	for name, c := range map[string]struct {
		verdict envelope.Verdict
		key     envelope.Auth
		change  func(*world, *endpoint.MasterConfig)
		told    bool // the members are told why
		want    string
	}{
		"rejected":       {rejected, auth, nil, true, "table full"},
		"wrong key":      {accepted, wrong, nil, true, "authentic"},
		"window too big": {accepted, auth, func(_ *world, m *endpoint.MasterConfig) { m.WindowLen = memSize + 1 }, true, "the smallest memory of a member has 65536"},
		"not a PMTU":     {accepted, auth, func(_ *world, m *endpoint.MasterConfig) { m.PathMTU = 1000 }, false, "path MTU 1000"},
		"nobody answers": {accepted, auth, func(w *world, m *endpoint.MasterConfig) {
			w.group = netip.MustParseAddr("10.77.254.2")
		}, true, "nobody answers ARP for 10.77.254.2: is it in gleamd's group_prefixes, is gleamd running?"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3, false, c.verdict, c.key)
			ctx, cancel := context.WithTimeout(w.ctx, 8*time.Second)
			defer cancel()
			var m endpoint.MasterConfig
			if c.change != nil {
				c.change(w, &m)
			}
			if !c.told { // they would wait for a master that never listened
				ctx, cancel = context.WithTimeout(ctx, 500*time.Millisecond)
				defer cancel()
			}
			_, errs := w.join(t, ctx, m)
			if errs[0] == nil || !strings.Contains(errs[0].Error(), c.want) {
				t.Errorf("the master's error is %v, want %q", errs[0], c.want)
			}
			for i, err := range errs[1:] {
				if err == nil {
					t.Errorf("member %d joined", i+1)
				} else if c.told && !strings.Contains(err.Error(), c.want) {
					t.Errorf("member %d was not told why: %v", i+1, err)
				}
			}
		})
	}
}
