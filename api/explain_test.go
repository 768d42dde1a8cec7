// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestExplainPacketQuery checks that a packet with all fields survives its query, and that each
// parameter of the description is read.
func TestExplainPacketQuery(t *testing.T) {
	p := &ExplainPacket{
		From: netip.MustParseAddr("10.77.0.1"), Op: "write-only", Port: "p1", AckReq: true, BECN: true, BadICRC: true,
		PSN: new(uint32(1)), QPN: new(uint32(2)), Payload: new(uint16(3)), VA: new(uint64(4)), RKey: new(uint32(5)), DMALen: new(uint32(6)), Syndrome: new(uint8(7)), MSN: new(uint32(8)),
	}
	q := p.Query()
	for _, x := range explainParams {
		if !q.Has(x.name) {
			t.Errorf("no field has the parameter %s", x.name)
		}
	}
	if len(q) != len(explainParams) {
		t.Errorf("%d parameters, described are %d", len(q), len(explainParams))
	}
	got, err := ParseExplainPacket(q)
	if err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("%+v, %v: want %+v", got, err, p)
	}
	for query, want := range map[string]string{
		"":                                      "from",
		"from=10.0.0.1":                         "op",
		"from=x&op=cnp":                         `from="x"`,
		"from=10.0.0.1&op=write":                "write-middle",
		"from=10.0.0.1&op=cnp&psn=0x1000000":    "24 bits",
		"from=10.0.0.1&op=cnp&psn=-1":           "want a number",
		"from=10.0.0.1&op=cnp&payload=5000":     "4096",
		"from=10.0.0.1&op=cnp&ack_req=2":        "true or false",
		"from=10.0.0.1&op=cnp&color=red":        `no parameter "color"`,
		"from=10.0.0.1&from=10.0.0.2&op=cnp":    "2 times",
		"from=10.0.0.1&op=cnp&syndrome=256":     "8 bits",
		"from=10.0.0.1&op=cnp&va=0x1ffffffffff": "",
	} {
		values, _ := url.ParseQuery(query)
		if _, err := ParseExplainPacket(values); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", query, err, want)
		}
	}
}

// FuzzExplainQuery parses any query: what is accepted means the same when it is sent again.
func FuzzExplainQuery(f *testing.F) {
	f.Add("from=10.77.0.1&op=write-middle&psn=0x10&va=1&rkey=0&ack_req=true")
	f.Add("from=fd00::1&op=acknowledge&syndrome=0x60&msn=3&port=p1&bad_icrc=true")
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		p, err := ParseExplainPacket(values)
		if err != nil {
			return
		}
		again, err := ParseExplainPacket(p.Query())
		if err != nil || !reflect.DeepEqual(p, again) {
			t.Fatalf("%q: %+v becomes %+v, %v", query, p, again, err)
		}
	})
}

// TestWhoMayExplain checks who may ask, who may name an R_Key, and how often.
func TestWhoMayExplain(t *testing.T) {
	h := &handler{}
	ask := func(r role, rkey bool) error {
		req := httptest.NewRequest("GET", "/v1/groups/10.0.0.1/explain", nil)
		return h.mayExplain(req.WithContext(context.WithValue(req.Context(), callerKey{}, &connectedUser{Peer: new(Peer), role: r})), rkey)
	}
	for r := reader; r < numRoles; r++ {
		var e *statusError
		err := ask(r, true)
		if forbidden := errors.As(err, &e) && e.status == http.StatusForbidden; forbidden != (r == reader) {
			t.Errorf("role %d names an R_Key: %v", r, err)
		}
		if err := ask(r, false); err != nil {
			t.Errorf("role %d: %v", r, err)
		}
	}
	refused := 0
	for range 2 * explainBurst {
		if ask(reader, false) != nil {
			refused++
		}
	}
	if refused < explainBurst-1 || refused > explainBurst+1 {
		t.Errorf("%d of %d at once are refused", refused, 2*explainBurst)
	}
	if err := ask(operator, false); err != nil {
		t.Errorf("readers take the operators' share: %v", err)
	}
	var a Access
	if a.refusal(&Peer{UID: 4711}, reader, http.MethodGet) != nil || a.refusal(&Peer{UID: 4711}, stranger, http.MethodGet) == nil {
		t.Error("readers may ask, and strangers may not")
	}
}

// TestExplainLimit checks the rate over time.
func TestExplainLimit(t *testing.T) {
	var l explainLimit
	now, n := time.Unix(0, 0), 0
	for range 10_000 {
		if l.allow(now) {
			n++
		}
		now = now.Add(time.Millisecond)
	}
	if want := 10*explainRate + explainBurst; n < want-2 || n > want+2 {
		t.Errorf("%d in 10 s, want %d", n, want)
	}
}
