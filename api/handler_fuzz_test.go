// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/test/apitest"
)

// FuzzHandler sends arbitrary requests to the API: every answer is JSON with a status
// of the table, and an accepted body has the same meaning when it is sent again.
func FuzzHandler(f *testing.F) {
	f.Add("POST", "/v1/groups", "", saneJSON)
	f.Add("POST", "/v1/groups/10.77.254.1/members", "", `{"ip":"10.77.0.9","qpn":17,"window":{"va":1,"len":2,"rkey":3}}`)
	f.Add("PATCH", "/v1/ports/p1", "", `{"rate":20000}`)
	f.Add("DELETE", "/v1/groups/10.77.254.1/members/10.77.0.1", "", "")
	f.Add("GET", "/v1/events", "since=0&wait=1ms", "")
	f.Add("GET", "/v1/groups/10.77.254.1/explain", "from=10.77.0.1&op=write-middle&psn=0x10&va=1&rkey=0&ack_req=true", "")
	f.Add("GET", "/v1/groups/10.77.254.1/ack", "", "")
	h := api.Handler(apitest.Switch(), build)
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		r := &http.Request{
			Method: method, URL: &url.URL{Path: path, RawQuery: query}, Header: make(http.Header),
			Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(ctx))
		if w.Code < 200 || w.Code > 599 || w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%s %q?%q %q: status %d, %q", method, path, query, body, w.Code, w.Body)
		}
		if m, err := api.DecodeAddMember(strings.NewReader(body)); err == nil {
			if again, err := json.Marshal(m); err != nil {
				t.Fatal(err)
			} else if m2, err := api.DecodeAddMember(strings.NewReader(string(again))); err != nil || m2.IP != m.IP || m2.QPN != m.QPN {
				t.Fatalf("%s\nbecame %s\nthen %+v, %v", body, again, m2, err)
			}
		}
		if s, err := api.DecodeSetPort(strings.NewReader(body)); err == nil && s.Rate.Validate() != nil {
			t.Fatalf("%s sets a rate of %d", body, *s.Rate)
		}
	})
}
