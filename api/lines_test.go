// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/test/apitest"
)

// Each answer to a GET is as openapi.json describes it, in one piece and in lines.
func TestAnswersAreAsDescribed(t *testing.T) {
	h := api.Handler(apitest.Switch(), build)
	get := func(path, accept string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		h.ServeHTTP(w, r)
		return w
	}
	doc, err := openapi3.NewLoader().LoadFromData(get("/v1/openapi.json", "").Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for path, item := range doc.Paths.Map() {
		if item.Get == nil || path == "/v1/openapi.json" {
			continue
		}
		ask := strings.Replace(path, "{group}", "10.77.254.1", 1)
		if strings.HasSuffix(path, "/explain") {
			ask += "?from=10.77.0.1&op=write-middle"
		}
		w := get(ask, "")
		content := item.Get.Responses.Status(w.Code).Value.Content
		check := func(schema *openapi3.SchemaRef, text string) {
			var v any
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if err := schema.Value.VisitJSON(v); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			n++
		}
		check(content["application/json"].Schema, w.Body.String())
		if content[api.Lines] == nil || path == "/v1/events" {
			continue
		}
		var whole []json.RawMessage
		if err := json.Unmarshal(w.Body.Bytes(), &whole); err != nil {
			t.Fatal(err)
		}
		w = get(path, "application/json;q=0.5, "+api.Lines)
		lines := strings.Split(strings.TrimSuffix(w.Body.String(), "\n"), "\n")
		if w.Header().Get("Content-Type") != api.Lines || len(lines) != len(whole) || len(lines) < 2 {
			t.Errorf("%s: %s of %d lines, want %d", path, w.Header().Get("Content-Type"), len(lines), len(whole))
		}
		for i, l := range lines {
			check(content[api.Lines].Schema, l)
			if l != string(whole[i]) {
				t.Errorf("%s: line %d is %s, want %s", path, i, l, whole[i])
			}
		}
	}
	if n < 12 {
		t.Errorf("%d answers were looked at", n)
	}
}

// A stream of events goes on while there are any, and ends with the server.
func TestEventsAreStreamed(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	ln, err := api.Listen(socket, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	b := &streaming{Backend: apitest.Switch(), more: make(chan api.Event, 1)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- api.Serve(ctx, ln, b, build, api.Access{}) }()
	client := unixClient(socket)
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://gleamd/v1/events?since=7", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", api.Lines)
	answer, err := client.Do(r)
	if err == nil {
		defer answer.Body.Close()
	}
	lines := bufio.NewScanner(answerBody(t, answer, err))
	var first api.Events
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &first) != nil || len(first.Events) != 0 || first.Last != 7 {
		t.Fatalf("the first line, before any event: %q %v", lines.Text(), lines.Err())
	}
	for seq := uint64(8); seq < 11; seq++ {
		b.more <- api.Event{Seq: seq, Kind: api.EventRegistered, Group: netip.MustParseAddr("10.0.0.1")}
		var es api.Events
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &es) != nil || len(es.Events) != 1 || es.Events[0].Seq != seq {
			t.Fatalf("event %d: %q %v", seq, lines.Text(), lines.Err())
		}
	}
	stop()
	for lines.Scan() { // an answer without events may come
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the stream ended with %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func answerBody(t *testing.T, answer *http.Response, err error) *bufio.Reader {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != api.Lines {
		t.Fatal(answer.Status, answer.Header)
	}
	return bufio.NewReader(answer.Body)
}

// streaming has an event for each that the test sends.
type streaming struct {
	*apitest.Backend
	more chan api.Event
}

func (s *streaming) Events(ctx context.Context, after uint64) (*api.Events, error) {
	select {
	case e := <-s.more:
		if e.Seq != after+1 {
			return nil, &api.Error{Message: "the stream has not taken note of the last number"}
		}
		return &api.Events{Events: []api.Event{e}, Last: e.Seq}, nil
	case <-ctx.Done():
		return &api.Events{Events: []api.Event{}, Last: after}, nil
	}
}

// unixClient asks the server of a socket, whatever the host of a URL is.
func unixClient(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
}
