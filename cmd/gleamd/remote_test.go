// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/doctor"
	"github.com/gleam-rdma/gleam/test/certs"
)

// freePort is a port of the loopback address that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// withRemote gives b an API over TCP.
func (b *bench) withRemote(t *testing.T, address, keys string) {
	t.Helper()
	text, err := os.ReadFile(b.file)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("api: {"), fmt.Appendf(nil, "api: {listen: %q, %s, ", address, keys), 1)
	if err := os.WriteFile(b.file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The API over TCP is served beside the socket, its refused connections are in the statistics
// and once in the log, and a reload takes new certificates.
func TestRemoteIsServed(t *testing.T) {
	b, ca := newBench(t, "log: {format: json}\n"), certs.New(t)
	issue := func(until time.Time) string {
		certificate, key := ca.Issue(certs.Want{Name: "switch", Server: netip.MustParseAddr("127.0.0.1"), Until: until})
		return fmt.Sprintf("certificate: %s, key: %s, ca: %s", certificate, key, ca.File)
	}
	address := freePort(t)
	b.withRemote(t, address, issue(time.Time{}))
	stop := b.start(t)
	defer stop()
	c, err := api.DialTLS(address, ca.Files(certs.Want{Name: "reader", Client: true}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if gs, err := c.Groups(t.Context()); err != nil || len(gs) != len(b.eng.GroupList) {
		t.Errorf("%d groups, %v", len(gs), err)
	}
	for range 2 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
		_, _ = conn.Read(make([]byte, 100))
		conn.Close()
	}
	local := api.Dial(b.socket)
	defer local.Close()
	st, err := local.Stats(t.Context())
	if err != nil || st.Remote == nil || st.Remote.Accepted != 1 || st.Remote.Refused[api.RefusedPlaintext] != 2 {
		t.Errorf("%+v, %v", st.Remote, err)
	}
	if n := strings.Count(b.err.String(), "a connection to the API over TCP is refused"); n != 1 {
		t.Errorf("%d reports of refused connections:\n%s", n, b.err.String())
	}
	ca.Issue(certs.Want{Name: "switch", Server: netip.MustParseAddr("127.0.0.2")})
	x, err := local.Reload(t.Context(), api.Reload{})
	if err != nil || !strings.Contains(fmt.Sprint(x.Applied), "api.certificate api.key") {
		t.Errorf("%+v, %v", x, err)
	}
	if _, err := c.Groups(t.Context()); err == nil || !strings.Contains(err.Error(), "127.0.0.2, not 127.0.0.1") {
		t.Errorf("the certificate is not the new one: %v", err)
	}
	issue(time.Now().Add(24 * time.Hour))
	if _, err := local.Reload(t.Context(), api.Reload{}); err != nil || !strings.Contains(b.err.String(), "has ended, or ends soon") {
		t.Errorf("%v\n%s", err, b.err.String())
	}
}

// An address that is taken is an error at start that names the key.
func TestRemoteAddressIsTaken(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	b, ca := newBench(t, ""), certs.New(t)
	certificate, key := ca.Issue(certs.Want{Name: "switch", Server: netip.MustParseAddr("127.0.0.1")})
	b.withRemote(t, ln.Addr().String(), fmt.Sprintf("certificate: %s, key: %s, ca: %s", certificate, key, ca.File))
	if code := b.main(t.Context(), []string{"-c", b.file}); code != 1 || !strings.Contains(b.err.String(), "(api.listen)") {
		t.Errorf("exit %d: %s", code, b.err.String())
	}
	if _, err := os.Lstat(b.socket); err == nil {
		t.Error("the socket is left behind")
	}
}

// gleamd --check names a certificate that has ended.
func TestEndedCertificateIsFound(t *testing.T) {
	ca := certs.New(t)
	for until, want := range map[time.Time]int{time.Now().Add(-time.Hour): 1, time.Now().Add(30 * 24 * time.Hour): 0} {
		certificate, key := ca.Issue(certs.Want{Name: "switch", Server: netip.MustParseAddr("127.0.0.1"), Until: until})
		cfg, err := config.Parse("f", fmt.Appendf(nil, "ports: [{name: lo}]\ngroup_prefixes: [10.77.254.0/24]\nenvelope: {insecure: true}\napi: {listen: \"127.0.0.1:99\", certificate: %s, key: %s, ca: %s}\n", certificate, key, ca.File))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, f := range doctor.Start(cfg, nil) {
			if strings.Contains(f.String(), "api.certificate: "+certificate+" ends, or has ended, at "+until.UTC().Format(time.RFC3339)) && !f.Fatal {
				found++
			}
		}
		if found != want {
			t.Errorf("a certificate until %v: %d findings, want %d", until, found, want)
		}
	}
}
