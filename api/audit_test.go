// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/test/apitest"
)

// Every requested change is reported once, with its outcome. Reads are not.
func TestChangesAreAudited(t *testing.T) {
	for _, tt := range []struct{ method, path, body, want string }{
		{"GET", "/v1/groups", "", ""},
		{"GET", "/v1/events", "", ""},
		{"POST", "/v1/groups", saneJSON, "10.77.254.1: register group: strict, members 10.77.0.1 10.77.0.2: group 10.77.254.1 is registered already"},
		{"POST", "/v1/groups", strings.Replace(saneJSON, "{", `{"replace":true,`, 1), "10.77.254.1: register group: strict, members 10.77.0.1 10.77.0.2, in place of another: <nil>"},
		{"POST", "/v1/groups", "{", `invalid IP: POST "/v1/groups": request is not a registration`},
		{"DELETE", "/v1/groups/10.77.254.1", "", "10.77.254.1: delete group: <nil>"},
		{"DELETE", "/v1/groups/10.77.254.9", "", "10.77.254.9: delete group: no group"},
		{"DELETE", "/v1/groups/x%1b%0a", "", `invalid IP: DELETE "/v1/groups/x\x1b\n": group address`},
		{"POST", "/v1/groups/10.77.254.1/members", `{"ip":"10.77.0.9","qpn":17}`, "10.77.254.1: add member 10.77.0.9: "},
		{"DELETE", "/v1/groups/10.77.254.1/members/10.77.0.1", "", "10.77.254.1: remove member 10.77.0.1: "},
		{"PATCH", "/v1/ports/p1", `{"rate":20000000}`, "invalid IP: set port p1: rate 20mbit: <nil>"},
	} {
		b := apitest.Switch()
		api.Handler(b, build).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(tt.method, "http://gleamd"+tt.path, strings.NewReader(tt.body)))
		got := ""
		for _, c := range b.Changes() {
			got += fmt.Sprintf("%v: %s: %v", c.Group, c.Action, c.Err)
		}
		if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" || strings.ContainsAny(got, "\x1b\n") {
			t.Errorf("%s %s: %q, want %q", tt.method, tt.path, got, tt.want)
		}
	}
}
