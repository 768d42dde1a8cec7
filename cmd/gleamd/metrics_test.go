// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Metrics are served where the configuration says: by TCP to those with the token, at the API's
// socket, at both, or nowhere.
func TestMetricsAreServed(t *testing.T) {
	const digits = "9f2c6b81d05e47a3c8e61f90b27d3a54e07b95c1482fd6a36c0e89f15b74d23a"
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(digits), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		config       string // %s is the address
		tcp, locally bool
		password     string
	}{
		{config: ""},
		{config: "metrics: {groups: 3}\n"},
		{config: "metrics: {socket: true}\n", locally: true},
		{config: "metrics: {listen: %q}\n", tcp: true},
		{config: "metrics: {listen: %q, socket: true, token_file: " + token + "}\n", tcp: true, locally: true, password: digits},
	} {
		address := freePort(t)
		text := c.config
		if strings.Contains(text, "%q") {
			text = fmt.Sprintf(text, address)
		}
		b := newBench(t, text)
		stop := b.start(t)
		socket := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", b.socket) }}}
		for name, x := range map[string]struct {
			client *http.Client
			url    string
			served bool
		}{
			"TCP":    {http.DefaultClient, "http://" + address + "/metrics", c.tcp},
			"socket": {&socket, "http://gleamd/metrics", c.locally},
		} {
			for _, password := range []string{c.password, "00"} {
				q, err := http.NewRequest("GET", x.url, nil)
				if err != nil {
					t.Fatal(err)
				}
				q.SetBasicAuth("prometheus", password)
				want := x.served && (name == "socket" || c.password == "" || password == c.password)
				r, err := x.client.Do(q)
				var body []byte
				if err == nil {
					body, _ = io.ReadAll(r.Body)
					r.Body.Close()
				}
				if got := err == nil && r.StatusCode == 200 && strings.Contains(string(body), "\ngleam_build_info{"); got != want {
					t.Errorf("%q by %s with password %.2q: served %v, want %v (%v, %s)", c.config, name, password, got, want, err, body)
				}
			}
		}
		socket.CloseIdleConnections()
		http.DefaultClient.CloseIdleConnections()
		if code := stop(); code != 0 {
			t.Errorf("exit %d: %s", code, b.err.String())
		}
	}
}

// An address that is taken is an error at start that names the key.
func TestMetricsAddressIsTaken(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	b := newBench(t, fmt.Sprintf("metrics: {listen: %q}\n", ln.Addr()))
	if code := b.main(t.Context(), []string{"-c", b.file}); code != 1 || !strings.Contains(b.err.String(), "(metrics.listen)") {
		t.Errorf("exit %d: %s", code, b.err.String())
	}
}
