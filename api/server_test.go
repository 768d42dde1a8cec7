// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/test/apitest"
)

const saneJSON = `{"group":"10.77.254.1","members":[{"ip":"10.77.0.1","qpn":17,"sq_psn":0,"rq_psn":1},{"ip":"10.77.0.2","qpn":17,"sq_psn":0,"rq_psn":1}]}`

// TestEveryRefusalIsJSON sends senseless requests over HTTP, as any client might.
func TestEveryRefusalIsJSON(t *testing.T) {
	b := apitest.Switch()
	h := api.Handler(b, build)
	for _, tt := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/", "", 404, "no such path: /"},
		{"GET", "/v1/group", "", 404, "no such path"},
		{"GET", "/v1/groups/10.77.254.1/members", "", 405, "POST"},
		{"GET", "/v1/groups/10.77.254.1/members/10.77.0.1", "", 405, "PATCH, DELETE"},
		{"PATCH", "/v1/groups/10.77.254.1/members/10.77.0.1", `{}`, 409, "not seen anywhere else"},
		{"PATCH", "/v1/groups/10.77.254.1/members/10.77.0.1", `{"port": 3}`, 400, "port"},
		{"PATCH", "/v1/groups/10.77.254.1/members/10.77.0.1", `{"mac": "01:00:00:00:00:01"}`, 400, "not the MAC address of a host"},
		{"PATCH", "/v1/groups/10.77.254.1/members/10.77.0.99", `{"port": "p2"}`, 404, "not a member"},
		{"PATCH", "/v1/groups/x/members/10.77.0.1", `{}`, 400, `"x"`},
		{"GET", "/v1/groups/10.77.254.1/member", "", 404, "no such path"},
		{"DELETE", "/v1/groups/10.77.254.1/members/10.77.0.1/x", "", 404, "no such path"},
		{"DELETE", "/v1/groups/10.77.254.9/members/10.77.0.1", "", 404, "no group 10.77.254.9"},
		{"DELETE", "/v1/groups/10.77.254.1/members/y", "", 400, `"y"`},
		{"DELETE", "/v1/groups/x/members/10.77.0.1", "", 400, `"x"`},
		{"POST", "/v1/groups/x/members", "{}", 400, `"x"`},
		{"POST", "/v1/groups/10.77.254.1/members", "", 400, "a member as JSON is expected"},
		{"POST", "/v1/groups/10.77.254.1/members", "{}", 400, "ip: missing"},
		{"POST", "/v1/groups/10.77.254.1/members", `{"ip":"10.77.0.9","qpn":1}`, 400, "qpn: 0x1"},
		{"POST", "/v1/groups/10.77.254.1/members", `{"ip":"10.77.254.1","qpn":17}`, 400, "the group's own"},
		{"POST", "/v1/groups/10.77.254.1/members", `{"ip":"10.77.0.9","qpn":17,"window":{"va":1}}`, 400, "window.len"},
		{"POST", "/v1/groups/10.77.254.1/members", `{"ip":"10.77.0.9","qpn":17,"replaces":true}`, 400, `"replaces"`},
		{"POST", "/v1/groups/10.77.254.9/members", `{"ip":"10.77.0.9","qpn":17}`, 404, "no group 10.77.254.9"},
		{"GET", "/v1/ports/p1", "", 405, "PATCH"},
		{"PATCH", "/v1/ports/p1/x", `{"rate":0}`, 404, "no such path"},
		{"PATCH", "/v1/ports/p9", `{"rate":0}`, 404, "there is no port p9"},
		{"PATCH", "/v1/ports/p1", "", 400, "a change of a port as JSON is expected"},
		{"PATCH", "/v1/ports/p1", "{}", 400, "nothing to change: give a rate"},
		{"PATCH", "/v1/ports/p1", `{"rate":"100mbit"}`, 400, "not a change of a port"},
		{"PATCH", "/v1/ports/p1", `{"rate":-1}`, 400, "rate: a rate of -1 bit/s: want 10000 to 1000000000000, or 0 for none"},
		{"PATCH", "/v1/ports/p1", `{"rate":100}`, 400, "rate: a rate of 100 bit/s"},
		{"PATCH", "/v1/ports/p1", `{"rate":1.5}`, 400, "not a change of a port"},
		{"PATCH", "/v1/ports/p1", `{"rate":20000,"mtu":9000}`, 400, `"mtu"`},
		{"PATCH", "/v1/ports/p1", `{"rate":20000}{}`, 400, "follows"},
		{"GET", "/v1/events?since=-1", "", 400, `since="-1"`},
		{"GET", "/v1/events?wait=5", "", 400, `wait="5"`},
		{"GET", "/v1/events?wait=-5s", "", 400, `wait="-5s"`},
		{"GET", "/v1/events?for=5s", "", 400, `"for"`},
		{"GET", "/v1/events?since=1&since=2", "", 400, `since is given 2 times`},
		{"GET", "/v1/events?group=eth1", "", 400, `group="eth1"`},
		{"GET", "/v1/events?group=fe80::1%25eth1", "", 400, `group="fe80::1%eth1"`},
		{"GET", "/v1/events?kind=stale", "", 400, `kind "stale": there is none of that name; there are registered, `},
		{"GET", "/v1/events?kind=", "", 400, `kind ""`},
		{"GET", "/v1/events?from=yesterday", "", 400, `from="yesterday"`},
		{"POST", "/v1/groups", strings.Replace(saneJSON, "{", `{"policy":"quorum:2",`, 1), 400, "there are 1 receivers"},
		{"POST", "/v1/groups", strings.Replace(saneJSON, "{", `{"policy":"quorum:0",`, 1), 400, "1 or more"},
		{"POST", "/v1/groups", strings.Replace(saneJSON, "{", `{"lag_ms":7,`, 1), 400, "strict removes nobody"},
		{"POST", "/v1/groups", strings.Replace(saneJSON, "{", `{"dead_after_ms":-2,`, 1), 400, "dead_after_ms: -2"},
		{"POST", "/v1/groups", strings.Replace(saneJSON, "{", `{"sender_retries":3,`, 1), 400, "sender_timeout: goes with the retries"},
		{"GET", "//v1//groups", "", 404, "no such path"},
		{"DELETE", "/v1/groups", "", 405, "GET, POST, PUT"},
		{"POST", "/v1/stats", "", 405, "GET"},
		{"PATCH", "/v1/groups/10.77.254.1", "", 405, "GET, DELETE"},
		{"GET", "/v1/groups/x", "", 400, `"x"`},
		{"GET", "/v1/groups/", "", 400, `""`},
		{"GET", "/v1/groups/10.0.0.9", "", 404, "no group 10.0.0.9"},
		{"DELETE", "/v1/groups/10.0.0.9", "", 404, "no group 10.0.0.9"},
		{"POST", "/v1/groups", "", 400, "no body"},
		{"POST", "/v1/groups", "{", 400, "unexpected EOF"},
		{"POST", "/v1/groups", "null", 400, "group: missing"},
		{"POST", "/v1/groups", "[]", 400, "not a registration"},
		{"POST", "/v1/groups", saneJSON + "{}", 400, "follows"},
		{"POST", "/v1/groups", saneJSON + "}", 400, "not a registration"},
		{"POST", "/v1/groups", strings.Replace(saneJSON, "sq_psn", "sqpsn", 1), 400, `"sqpsn"`},
		{"POST", "/v1/groups", strings.Replace(saneJSON, "17", "-17", 1), 400, "-17"},
		{"POST", "/v1/groups", strings.Replace(saneJSON, "10.77.0.2", "10.77.0.x", 1), 400, "10.77.0.x"},
		{"POST", "/v1/groups", strings.Replace(saneJSON, "10.77.0.2", "10.77.0.1", 1), 400, "members[1].ip: 10.77.0.1 is a member already"},
		{"POST", "/v1/groups", saneJSON + strings.Repeat(" ", 1<<20), 413, "1048576"},
		{"POST", "/v1/groups", `{"group":"` + strings.Repeat("1", 1<<20) + `"}`, 413, "1048576"},
		{"POST", "/v1/groups", `{"members":[` + strings.Repeat("{},", 300_000) + `{}]}`, 400, "request has 300002 JSON objects: a registration has 8194 at most"},
		{"PUT", "/v1/groups", strings.Replace(saneJSON, "10.77.254.1", "192.0.2.1", 1), 409, "not a group prefix"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(tt.method, "http://gleamd"+tt.path, strings.NewReader(tt.body)))
		var e api.Error
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
			t.Errorf("%s %s: not JSON: %s", tt.method, tt.path, w.Body)
		}
		if w.Code != tt.status || !strings.Contains(e.Message, tt.want) || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s %s %.80s: got %d %v, want %d with %q", tt.method, tt.path, tt.body, w.Code, e, tt.status, tt.want)
		}
		if tt.status == 405 && w.Header().Get("Allow") != tt.want {
			t.Errorf("%s %s: Allow is %q, want %q", tt.method, tt.path, w.Header().Get("Allow"), tt.want)
		}
	}
	if got := b.Registered(); len(got) != 0 {
		t.Errorf("the backend saw %+v", got)
	}
}

func TestPutAndPostRegisterAlike(t *testing.T) {
	for _, method := range []string{"PUT", "POST"} {
		b := &apitest.Backend{}
		w := httptest.NewRecorder()
		api.Handler(b, build).ServeHTTP(w, httptest.NewRequest(method, "/v1/groups", strings.NewReader(saneJSON)))
		got := b.Registered()
		if w.Code != http.StatusNoContent || w.Body.Len() != 0 || len(got) != 1 {
			t.Fatalf("%s: %d %s, backend has %v", method, w.Code, w.Body, got)
		}
		if r := got[0]; r.QPN != api.DefaultQPN || r.PMTU != api.DefaultPMTU || r.Policy != api.PolicyStrict {
			t.Errorf("%s: defaults are not filled in: %+v", method, r)
		}
	}
}

func TestBackendFailures(t *testing.T) {
	for _, tt := range []struct {
		fail   error
		status int
	}{
		{errors.New("the switch has stopped"), 500},
		{&api.Error{Message: "table full", Reason: "table_full"}, 409},
		{&api.Error{Message: "gone", Reason: api.ReasonUnknownGroup}, 404},
	} {
		h := api.Handler(&apitest.Backend{Fail: tt.fail}, build)
		for _, path := range []string{"/v1/groups", "/v1/groups/10.0.0.1", "/v1/ports", "/v1/stats"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.fail.Error()) {
				t.Errorf("%s: got %d %s, want %d with %q", path, w.Code, w.Body, tt.status, tt.fail)
			}
		}
	}
}

func TestEmptyListsAreLists(t *testing.T) {
	h := api.Handler(&apitest.Backend{}, build)
	for _, path := range []string{"/v1/groups", "/v1/ports"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if got, _ := io.ReadAll(w.Body); strings.TrimSpace(string(got)) != "[]" {
			t.Errorf("%s: %s", path, got)
		}
	}
}
