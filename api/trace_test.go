// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/test/apitest"
)

// What makes no sense is refused before anything is recorded.
func TestTraceRefuses(t *testing.T) {
	busy := apitest.Switch()
	busy.Fail = &api.Error{Reason: api.ReasonTraceRuns, Message: "another trace runs"}
	for _, c := range []struct {
		b            api.Backend
		method, body string
		status       int
		says         string
	}{
		{apitest.Switch(), "GET", "", http.StatusMethodNotAllowed, "POST, DELETE is"},
		{apitest.Switch(), "POST", "", http.StatusBadRequest, "trace"},
		{apitest.Switch(), "POST", `{"grup":"10.0.0.1"}`, http.StatusBadRequest, "grup"},
		{apitest.Switch(), "POST", `{"opcodes":["write-middle","rite"]}`, http.StatusBadRequest, `no opcode has the name \"rite\": there are acknowledge, atomic`},
		{apitest.Switch(), "POST", `{"psns":{"first":16777216,"last":0}}`, http.StatusBadRequest, "24 bits"},
		{apitest.Switch(), "POST", `{"snap":8193}`, http.StatusBadRequest, "8192"},
		{apitest.Switch(), "POST", `{"rate":-1}`, http.StatusBadRequest, "rate -1"},
		{apitest.Switch(), "POST", `{"count":-1}`, http.StatusBadRequest, "count -1"},
		{apitest.Switch(), "POST", `{"seconds":90000}`, http.StatusBadRequest, "a day"},
		{apitest.Switch(), "POST", `{"slow":true}`, http.StatusBadRequest, "needs a group"},
		{busy, "POST", `{}`, http.StatusConflict, api.ReasonTraceRuns},
		{apitest.Switch(), "DELETE", "", http.StatusConflict, api.ReasonNoTrace},
	} {
		w := httptest.NewRecorder()
		api.Handler(c.b, api.Version{}).ServeHTTP(w, httptest.NewRequest(c.method, "/v1/trace", strings.NewReader(c.body)))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %s: %d, %s; want %d, %s", c.method, c.body, w.Code, w.Body, c.status, c.says)
		}
	}
}

// Lines come as they are made, and an end by request, by the reader and by the server is noticed.
func TestTraceStreams(t *testing.T) {
	b := apitest.Switch()
	b.Traced = []api.TracePacket{{Text: "one"}, {Text: "two"}}
	for _, how := range []string{"request", "reader", "error of the reader", "server"} {
		t.Run(how, func(t *testing.T) {
			client, stopServer := serveAs(t, b)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			enough := errors.New("enough")
			var got []string
			err := client.Trace(ctx, &api.Trace{}, func(l *api.TraceLine, more bool) error {
				switch {
				case l.Start != nil:
					got = append(got, strings.Join(l.Start.Ports, " "))
				case l.Packet != nil:
					got = append(got, l.Packet.Text)
					if l.Packet.Text != "two" {
						return nil
					}
					switch how { // the stream is open, and nothing more is coming
					case "request":
						return client.StopTrace(ctx)
					case "reader":
						cancel()
					case "server":
						stopServer()
					default:
						return enough
					}
				case l.End != nil:
					got = append(got, l.End.Reason)
				}
				return nil
			})
			want := map[string]string{"request": "eth1 eth2, one, two, stopped"}[how]
			if want == "" {
				want = "eth1 eth2, one, two"
			}
			if s := strings.Join(got, ", "); s != want {
				t.Errorf("%q, want %q", s, want)
			}
			switch how {
			case "request", "server":
				if err != nil {
					t.Error(err)
				}
			case "reader":
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			default:
				if !errors.Is(err, enough) {
					t.Error(err)
				}
			}
		})
	}
	var actions []string
	for _, c := range b.Changes() {
		actions = append(actions, c.Action)
	}
	if s := strings.Join(actions, "; "); !strings.Contains(s, "trace packets, headers only") || !strings.Contains(s, "stop the trace") {
		t.Errorf("the audit has %s", s)
	}
}

// serveAs serves b on a socket, and returns a client and what stops the server.
func serveAs(t *testing.T, b api.Backend) (*api.Client, func()) {
	t.Helper()
	socket := t.TempDir() + "/gleamd.sock"
	ln, err := api.Listen(socket, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- api.Serve(ctx, ln, b, api.Version{}, api.Access{}) }()
	client := api.Dial(socket)
	t.Cleanup(func() {
		client.Close()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return client, stop
}
