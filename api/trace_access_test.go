// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Packets are for those who may change the switch: no reader begins or ends a trace.
func TestTraceIsForOperators(t *testing.T) {
	shares := newShares()
	h := &handler{access: &Access{}, shares: &shares, backend: noBackend{}}
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		r := httptest.NewRequest(method, "/v1/trace", strings.NewReader("{}"))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, &connectedUser{Peer: &Peer{UID: 1000}, role: reader})))
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), ReasonForbidden) {
			t.Errorf("%s by a reader: %d %s", method, w.Code, w.Body)
		}
	}
}

// noBackend is asked for nothing but the audit.
type noBackend struct{ Backend }

func (noBackend) Audit(*Change) {}
