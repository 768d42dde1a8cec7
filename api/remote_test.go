// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config/identity"
	"github.com/gleam-rdma/gleam/test/apitest"
	"github.com/gleam-rdma/gleam/test/certs"
)

var loopback = netip.MustParseAddr("127.0.0.1")

// remote is the API over TCP in a test.
type remote struct {
	*api.Remote
	t       *testing.T
	backend *apitest.Backend
	ca      *certs.Authority
	address string

	mu      sync.Mutex
	reports []string
}

func newRemote(t *testing.T) *remote {
	t.Helper()
	r := &remote{t: t, backend: apitest.Switch(), ca: certs.New(t)}
	var err error
	r.Remote, err = api.NewRemote(r.ca.Files(certs.Want{Name: "switch", Server: loopback}), []string{"operator"}, func(cause string, _ net.Addr, err error, count uint64) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.reports = append(r.reports, fmt.Sprintf("%s %d %v", cause, count, err))
	})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := api.ListenTCP(t.Context(), "api.listen", netip.AddrPortFrom(loopback, 0))
	if err != nil {
		t.Fatal(err)
	}
	r.address = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx, ln, r.backend, build) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r
}

// client has the certificate that is wanted.
func (r *remote) client(f *identity.Files) *api.Client {
	r.t.Helper()
	c, err := api.DialTLS(r.address, f)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(c.Close)
	return c
}

// waitFor waits until the counters have what is wanted.
func (r *remote) waitFor(what string, done func(*api.RemoteStats) bool) {
	r.t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(r.Stats()); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("%s: %+v", what, r.Stats())
		}
	}
}

// A certificate gives the right to read, and to change if its name is among the operators.
func TestRemoteRights(t *testing.T) {
	r := newRemote(t)
	reader := r.client(r.ca.Files(certs.Want{Name: "reader", Client: true}))
	if gs, err := reader.Groups(t.Context()); err != nil || len(gs) != len(r.backend.GroupList) {
		t.Errorf("%d groups, %v", len(gs), err)
	}
	group := r.backend.GroupList[0].IP
	var e *api.Error
	if err := reader.Delete(t.Context(), group); !errors.As(err, &e) || e.Reason != api.ReasonForbidden || !strings.Contains(e.Message, `certificate "reader" may not change here: api.operators`) {
		t.Errorf("a reader deletes a group: %v", err)
	}
	if err := r.client(r.ca.Files(certs.Want{Name: "operator", Client: true})).Delete(t.Context(), group); err != nil {
		t.Error(err)
	}
	var by []string
	for _, c := range r.backend.Changes() {
		by = append(by, fmt.Sprint(strings.HasPrefix(c.By, `certificate "`), strings.Contains(c.By, " at 127.0.0.1:"), c.Err == nil))
	}
	if got := strings.Join(by, ", "); got != "true true false, true true true" {
		t.Errorf("audit: %s, %+v", got, r.backend.Changes())
	}
}

// A client that cannot authenticate gets no answer: each attempt is counted under its cause, and
// reported once.
func TestRemoteRefuses(t *testing.T) {
	r := newRemote(t)
	good := certs.Want{Name: "reader", Client: true}
	other := certs.New(t)
	mixed := func(own, trusts *identity.Files) *identity.Files {
		return &identity.Files{Certificate: own.Certificate, Key: own.Key, CA: trusts.CA}
	}
	ours := r.ca.Files(good)
	for name, tt := range map[string]struct {
		files *identity.Files
		cause string
		says  string
	}{
		"another authority": {mixed(other.Files(good), ours), api.RefusedCertificate, "refuses this client: tls: unknown certificate authority"},
		"expired":           {r.ca.Files(certs.Want{Name: "late", Client: true, Until: time.Now().Add(-time.Second)}), api.RefusedCertificate, "refuses this client: tls: expired certificate"},
		"for servers alone": {r.ca.Files(certs.Want{Name: "other-switch", Server: loopback}), api.RefusedCertificate, "refuses this client: "},
	} {
		before := r.Stats().Refused[tt.cause]
		if _, err := r.client(tt.files).Groups(t.Context()); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", name, err, tt.says)
		}
		r.waitFor(name, func(s *api.RemoteStats) bool { return s.Refused[tt.cause] == before+1 })
	}
	config, err := ours.Client("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	none := config.Clone()
	none.Certificates = nil
	old := config.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	for cause, c := range map[string]*tls.Config{api.RefusedNoCertificate: none, api.RefusedHandshake: old} {
		for range 3 {
			conn, err := tls.Dial("tcp", r.address, c)
			if err == nil {
				_, _ = io.WriteString(conn, "GET /v1/groups HTTP/1.1\r\nHost: x\r\n\r\n")
				if b, err := io.ReadAll(conn); err == nil || len(b) > 0 {
					t.Errorf("%s: got %q, %v", cause, b, err)
				}
				conn.Close()
			}
		}
		r.waitFor(cause, func(s *api.RemoteStats) bool { return s.Refused[cause] == 3 })
	}
	resp, err := http.Get("http://" + r.address + "/v1/groups")
	if err == nil {
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			t.Errorf("a client without TLS got %s: %s", resp.Status, b)
		}
	}
	r.waitFor("plaintext", func(s *api.RemoteStats) bool { return s.Refused[api.RefusedPlaintext] == 1 })
	if s := r.Stats(); s.Accepted != 0 || s.Open != 0 {
		t.Errorf("%+v", s)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.reports) != 4 {
		t.Errorf("want a report for each of four causes: %q", r.reports)
	}
}

// A client notices a server that is another one, or none of TLS.
func TestRemoteServerIsProved(t *testing.T) {
	r := newRemote(t)
	ours := r.ca.Files(certs.Want{Name: "reader", Client: true})
	if _, err := r.client(certs.New(t).Files(certs.Want{Name: "reader", Client: true})).Groups(t.Context()); err == nil || !strings.Contains(err.Error(), "its certificate is refused") {
		t.Errorf("a server of another authority: %v", err)
	}
	if err := r.Set(r.ca.Files(certs.Want{Name: "switch", Server: netip.MustParseAddr("127.0.0.2")}), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := r.client(ours).Groups(t.Context()); err == nil || !strings.Contains(err.Error(), "127.0.0.2, not 127.0.0.1") {
		t.Errorf("a server of another address: %v", err)
	}
	if err := r.Set(r.ca.Files(certs.Want{Name: "a-client", Client: true}), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := r.client(ours).Groups(t.Context()); err == nil || !strings.Contains(err.Error(), "its certificate is refused") {
		t.Errorf("a server with a client's certificate: %v", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for c, err := ln.Accept(); err == nil; c, err = ln.Accept() {
			_, _ = io.WriteString(c, "SSH-2.0-x\r\n")
			c.Close()
		}
	}()
	c, err := api.DialTLS(ln.Addr().String(), ours)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Groups(t.Context()); err == nil || !strings.Contains(err.Error(), "does not speak TLS") {
		t.Errorf("a server without TLS: %v", err)
	}
	if _, err := api.DialTLS("10.0.0.1", ours); err == nil || !strings.Contains(err.Error(), "want host and port") {
		t.Error(err)
	}
}

// Clients that say nothing, or a byte now and then, take neither others' connections nor keep
// their own.
func TestRemoteSlowClients(t *testing.T) {
	r := newRemote(t)
	var slow []net.Conn
	for range 100 {
		c, err := net.Dial("tcp", r.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		slow = append(slow, c)
	}
	r.waitFor("those that are too many are closed", func(s *api.RemoteStats) bool { return s.Refused[api.RefusedBusy] == 36 })
	begin := time.Now()
	if _, err := r.client(r.ca.Files(certs.Want{Name: "early", Client: true})).Groups(t.Context()); err != nil || time.Since(begin) > 3*time.Second {
		t.Errorf("a client beside silent ones of its address: %v after %v", err, time.Since(begin))
	}
	drip := time.NewTicker(500 * time.Millisecond)
	defer drip.Stop()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-drip.C:
				_, _ = slow[99].Write([]byte{22, 3, 1, 2, 0, 1}[min(i, 5):][:1])
			case <-stop:
				return
			}
		}
	}()
	r.waitFor("handshakes end", func(s *api.RemoteStats) bool { return s.Refused[api.RefusedTimeout] == 63 })
	if _, err := r.client(r.ca.Files(certs.Want{Name: "reader", Client: true})).Groups(t.Context()); err != nil {
		t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.reports) != 2 {
		t.Errorf("want a report of each cause: %q", r.reports)
	}
}

// New certificates count for connections that are there: they are closed, and the client has
// to prove itself again.
func TestRemoteReloads(t *testing.T) {
	r := newRemote(t)
	operator := r.ca.Files(certs.Want{Name: "operator", Client: true})
	config, err := operator.Client("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	open, err := tls.Dial("tcp", r.address, config)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	r.waitFor("the connection is open", func(s *api.RemoteStats) bool { return s.Open == 1 })
	if err := r.Set(r.ca.Files(certs.Want{Name: "switch", Server: loopback}), nil); err != nil {
		t.Fatal(err)
	}
	r.waitFor("the connection is closed", func(s *api.RemoteStats) bool { return s.Open == 0 })
	_ = open.SetReadDeadline(time.Now().Add(10 * time.Second))
	var timeout net.Error
	if _, err := open.Read(make([]byte, 1)); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("the client still has the connection: %v", err)
	}
	// Another client: the first one may hold its end of the connection for open, and net/http sends
	// a DELETE once.
	c := r.client(operator)
	var e *api.Error
	if err := c.Delete(t.Context(), r.backend.GroupList[0].IP); !errors.As(err, &e) || e.Reason != api.ReasonForbidden {
		t.Errorf("an operator of before deletes a group: %v", err)
	}
	other := certs.New(t)
	ours := r.ca.Files(certs.Want{Name: "switch", Server: loopback})
	if err := r.Set(&identity.Files{Certificate: ours.Certificate, Key: ours.Key, CA: other.Files(certs.Want{Name: "x"}).CA}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Groups(t.Context()); err == nil || !strings.Contains(err.Error(), "refuses this client") {
		t.Errorf("a client of the former authority: %v", err)
	}
	if err := r.Set(&identity.Files{Certificate: ours.Certificate, Key: other.Files(certs.Want{Name: "y"}).Key, CA: ours.CA}, nil); err == nil || !strings.Contains(err.Error(), "is not the private key") {
		t.Error(err)
	}
}

// A certificate counts until it ends, also on a connection that was there before.
func TestRemoteCertificateEnds(t *testing.T) {
	r := newRemote(t)
	c := r.client(r.ca.Files(certs.Want{Name: "short", Client: true, Until: time.Now().Add(2 * time.Second)}))
	if _, err := c.Groups(t.Context()); err != nil {
		t.Fatal(err)
	}
	var err error
	for end := time.Now().Add(20 * time.Second); err == nil && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		_, err = c.Groups(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), `certificate "short" has ended at `) {
		t.Error(err)
	}
}

// The connections of one certificate are bounded, and another one gets its own.
func TestRemoteShares(t *testing.T) {
	r := newRemote(t)
	many := r.ca.Files(certs.Want{Name: "many", Client: true})
	config, err := many.Client("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for range 16 {
		c, err := tls.Dial("tcp", r.address, config)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	r.waitFor("16 connections", func(s *api.RemoteStats) bool { return s.Open == 16 })
	if _, err := r.client(many).Groups(t.Context()); err == nil || !strings.Contains(err.Error(), `too many connections: certificate "many" may have 16 at once`) {
		t.Errorf("one more: %v", err)
	}
	if _, err := r.client(r.ca.Files(certs.Want{Name: "reader", Client: true})).Groups(t.Context()); err != nil {
		t.Error(err)
	}
}
