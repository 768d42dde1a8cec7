// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/gleam-rdma/gleam/test/certs"
)

// The page is served where the configuration says, with TLS if it has certificates, and its
// address is in the log.
func TestPageIsServed(t *testing.T) {
	ca, address := certs.New(t), freePort(t)
	certificate, key := ca.Issue(certs.Want{Name: "switch", Server: netip.MustParseAddr("127.0.0.1")})
	client, err := ca.Files(certs.Want{Name: "browser", Client: true}).Client("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	stranger := client.Clone()
	stranger.Certificates = nil
	for more, clients := range map[string]map[*tls.Config]bool{
		"": {nil: true},
		fmt.Sprintf(", certificate: %s, key: %s", certificate, key):                  {client: true, stranger: true},
		fmt.Sprintf(", certificate: %s, key: %s, ca: %s", certificate, key, ca.File): {client: true, stranger: false},
	} {
		b := newBench(t, fmt.Sprintf("web: {listen: %q%s}\n", address, more))
		stop := b.start(t)
		for c, served := range clients {
			scheme := map[bool]string{true: "http", false: "https"}[c == nil]
			url := scheme + "://" + address + "/"
			transport := &http.Transport{TLSClientConfig: c}
			r, err := (&http.Client{Transport: transport}).Get(url)
			if (err == nil) != served {
				t.Errorf("%s%s: %v", url, more, err)
			}
			if err == nil {
				text, _ := io.ReadAll(r.Body)
				r.Body.Close()
				if !strings.Contains(string(text), "<h1>Gleam switch</h1>") || !strings.Contains(b.err.String(), url) {
					t.Errorf("%s: %s\nlog: %s", url, text, b.err.String())
				}
			}
			transport.CloseIdleConnections()
		}
		if code := stop(); code != 0 {
			t.Errorf("exit %d: %s", code, b.err.String())
		}
	}
}

// An address that is taken is an error at start that names the key.
func TestPageAddressIsTaken(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	b := newBench(t, fmt.Sprintf("web: {listen: %q}\n", ln.Addr()))
	if code := b.main(t.Context(), []string{"-c", b.file}); code != 1 || !strings.Contains(b.err.String(), "(web.listen)") {
		t.Errorf("exit %d: %s", code, b.err.String())
	}
}
