// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// What a client asks is what the server reads, and what makes no sense is refused by name.
func TestGroupQuery(t *testing.T) {
	ip := netip.MustParseAddr
	for _, q := range []GroupQuery{{}, {After: ip("10.0.0.1")}, {Limit: 7, Member: ip("fd00::2")}, {Key: 65535, State: "failed"}} {
		got, err := parseGroupQuery(httptest.NewRequest("GET", "/v1/groups?"+q.values().Encode(), nil))
		if err != nil || got != q {
			t.Errorf("%+v: %+v, %v", q, got, err)
		}
	}
	for text, names := range map[string]string{
		"limit=-1": "limit", "limit=9999999999": "limit", "limit=": "limit", "key=0": "key", "key=65536": "key", "state=dead": "state", "member=x": "address",
		"after=10": "address", "limit=1&limit=2": "limit is given 2 times", "order=up": "no such parameter",
	} {
		if _, err := parseGroupQuery(httptest.NewRequest("GET", "/v1/groups?"+text, nil)); err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("%s: %v", text, err)
		}
	}
	g := &Group{IP: ip("10.0.0.5"), Key: 3, State: "running", Members: []Member{{IP: ip("10.1.0.1")}, {IP: ip("10.1.0.2")}}}
	for q, want := range map[GroupQuery]bool{
		{}: true, {After: ip("10.0.0.4")}: true, {After: ip("10.0.0.5")}: false, {Member: ip("10.1.0.2")}: true, {Member: ip("10.1.0.3")}: false,
		{Key: 3}: true, {Key: 4}: false, {State: "running"}: true, {State: "failed"}: false, {Key: 3, State: "running", Member: ip("10.1.0.1"), Limit: 1}: true,
	} {
		if q.Selects(g) != want {
			t.Errorf("%+v: %v", q, !want)
		}
	}
}
