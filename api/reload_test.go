// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/test/apitest"
)

// A reload is a change: only POST does it. A switch without a configuration file
// refuses, with a reason that programs can read.
func TestReload(t *testing.T) {
	for _, c := range []struct {
		b      api.Backend
		method string
		body   string
		status int
		says   string
	}{
		{apitest.Switch(), "POST", "", http.StatusOK, `{"keys":[1,7],"applied":["envelope.keys","ports[p1].rate"],"unchanged":["umem.frames"],"needs_restart":[{"key":"psn_probe","reason":"the workers are made with it"}],"members_lost":0,"groups_ended":[]}`},
		{apitest.Switch(), "POST", `{"force":true}`, http.StatusOK, `"ports[p2]"],`},
		{apitest.Switch(), "POST", `{"forse":true}`, http.StatusBadRequest, "forse"},
		{apitest.Switch(), "GET", "", http.StatusMethodNotAllowed, "POST is"},
		{struct{ api.Backend }{apitest.Switch()}, "POST", "", http.StatusConflict, api.ReasonReload},
	} {
		w := httptest.NewRecorder()
		api.Handler(c.b, api.Version{}).ServeHTTP(w, httptest.NewRequest(c.method, "/v1/reload", strings.NewReader(c.body)))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d, %s", c.method, w.Code, w.Body)
		}
	}
}
