// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/test/apitest"
	"github.com/gleam-rdma/gleam/test/certs"
)

// Requests by foreign names, of foreign pages, without the token, and those that would change
// something are refused; all others get the page.
func TestRefusals(t *testing.T) {
	token := []byte("0123456789abcdefghijklmnopqrstuv")
	digits := hex.EncodeToString(token)
	ask := func(s *site, method, host string, more ...string) int {
		r := httptest.NewRequest(method, "http://x/", nil)
		r.Host = host
		for i := 0; i < len(more); i += 2 {
			r.Header.Set(more[i], more[i+1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'self';") {
			t.Errorf("%s %s: Content-Security-Policy %q", method, host, got)
		}
		return w.Code
	}
	open, err := newSite(t.Context(), apitest.Switch(), api.Version{}, Config{Names: []string{"switch.example"}})
	if err != nil {
		t.Fatal(err)
	}
	closed, err := newSite(t.Context(), apitest.Switch(), api.Version{}, Config{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	const here = "127.0.0.1:80"
	basic := func(password string) string {
		r := httptest.NewRequest("GET", "/", nil)
		r.SetBasicAuth("anybody", password)
		return r.Header.Get("Authorization")
	}
	for _, c := range []struct {
		name string
		site *site
		want int
		ask  []string
	}{
		{"address", open, 200, []string{"GET", here}},
		{"address of IPv6", open, 200, []string{"GET", "[::1]:80"}},
		{"address without port", open, 200, []string{"GET", "10.0.0.1"}},
		{"localhost", open, 200, []string{"GET", "localhost:80"}},
		{"known name", open, 200, []string{"GET", "Switch.Example:80"}},
		{"foreign name", open, 421, []string{"GET", "evil.example:80"}},
		{"foreign name with a known one in it", open, 421, []string{"GET", "switch.example.evil.example"}},
		{"name like an address", open, 421, []string{"GET", "127.0.0.1.evil.example:80"}},
		{"no name", open, 421, []string{"GET", ""}},
		{"own origin", open, 200, []string{"GET", here, "Origin", "http://" + here}},
		{"foreign origin", open, 403, []string{"GET", here, "Origin", "http://evil.example"}},
		{"origin of another port", open, 403, []string{"GET", here, "Origin", "http://127.0.0.1:81"}},
		{"null origin", open, 403, []string{"GET", here, "Origin", "null"}},
		{"script of a foreign page", open, 403, []string{"GET", here, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}},
		{"frame of a foreign page", open, 403, []string{"GET", here, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}},
		{"link of a foreign page", open, 200, []string{"GET", here, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}},
		{"POST", open, 405, []string{"POST", here}},
		{"DELETE", open, 405, []string{"DELETE", here}},
		{"OPTIONS", open, 405, []string{"OPTIONS", here}},
		{"no token", closed, 401, []string{"GET", here}},
		{"empty token", closed, 401, []string{"GET", here, "Authorization", basic("")}},
		{"wrong token", closed, 401, []string{"GET", here, "Authorization", basic(strings.Repeat("00", 32))}},
		{"part of the token", closed, 401, []string{"GET", here, "Authorization", basic(digits[:62])}},
		{"token", closed, 200, []string{"GET", here, "Authorization", basic(digits)}},
		{"token of a program", closed, 200, []string{"GET", here, "Authorization", "Bearer " + digits}},
	} {
		if got := ask(c.site, c.ask[0], c.ask[1], c.ask[2:]...); got != c.want {
			t.Errorf("%s: status %d, want %d", c.name, got, c.want)
		}
	}
}

// counting counts the samples that are asked for.
type counting struct {
	*apitest.Backend
	samples atomic.Int64
}

func (c *counting) BusiestGroups(n int) ([]api.Group, int, error) {
	c.samples.Add(1)
	return c.Backend.BusiestGroups(n)
}

// serve serves the page of b at an address of the loopback.
func serve(t *testing.T, b Backend, c Config) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	end := make(chan error, 1)
	go func() { end <- Serve(ctx, ln, b, api.Version{Version: "1"}, c) }()
	t.Cleanup(func() {
		cancel()
		if err := <-end; err != nil {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String()
}

// Silent connections of a stranger, and those by which it asks without the token, keep nobody
// out, with and without TLS: a reader of another address is served at once, one that looks on
// goes on, and connections without a request end.
func TestSilentConnections(t *testing.T) {
	ca := certs.New(t)
	files := ca.Files(certs.Want{Name: "switch", Server: netip.MustParseAddr("127.0.0.1")})
	server, err := files.PageServer()
	if err != nil {
		t.Fatal(err)
	}
	server.ClientAuth, server.ClientCAs = tls.NoClientCert, nil
	client, err := ca.Files(certs.Want{Name: "reader", Client: true}).Client("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	token := []byte("0123456789abcdefghijklmnopqrstuv")
	for _, c := range []struct {
		name           string
		scheme         string
		server, client *tls.Config
		says           string // the bytes that each connection of the stranger sends
	}{
		{"silent", "http", nil, nil, ""},
		{"silent, with TLS", "https", server, client, ""},
		{"part of a request", "http", nil, nil, "GET / HTTP/1.1\r\n"},
		{"without the token", "http", nil, nil, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			address := strings.TrimPrefix(serve(t, apitest.Switch(), Config{Token: token, TLS: c.server}), "http://")
			reader := func(from string) *http.Client {
				dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
				return &http.Client{Transport: &http.Transport{TLSClientConfig: c.client, DialContext: dialer.DialContext, DisableKeepAlives: true}, Timeout: 3 * time.Second}
			}
			ask := func(from string) (*http.Response, error) {
				r, err := http.NewRequest("GET", c.scheme+"://"+address+"/live", nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer "+hex.EncodeToString(token))
				return reader(from).Do(r)
			}
			first, err := ask("127.0.0.9")
			if err != nil {
				t.Fatal(err)
			}
			defer first.Body.Close()
			stranger := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
			var held []net.Conn
			for range 3 * maxConns {
				conn, err := stranger.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if _, err := io.WriteString(conn, c.says); err != nil {
					t.Fatal(err)
				}
				held = append(held, conn)
			}
			for _, from := range []string{"127.0.0.3", "127.0.0.2"} {
				begin := time.Now()
				r, err := ask(from)
				if err != nil {
					t.Errorf("a reader at %s is kept out for %v: %v", from, time.Since(begin), err)
					continue
				}
				if r.Body.Close(); r.StatusCode != http.StatusOK {
					t.Errorf("a reader at %s gets %s", from, r.Status)
				}
			}
			if _, err := first.Body.Read(make([]byte, 1)); err != nil {
				t.Errorf("the reader of before: %v", err)
			}
			end := time.Now().Add(2 * readTimeout)
			for i, conn := range held {
				_ = conn.SetReadDeadline(end)
				if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("connection %d of the stranger is still there", i)
				}
			}
		})
	}
}

// follow opens the stream of samples.
func follow(t *testing.T, url string) (*bufio.Scanner, *http.Response) {
	t.Helper()
	r, err := http.Get(url + "/live")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Body.Close() })
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 16<<20)
	return lines, r
}

// next returns the next sample of a stream.
func next(t *testing.T, lines *bufio.Scanner) (x sample) {
	t.Helper()
	for kind := ""; lines.Scan(); {
		if k, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kind = k
		}
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok && kind == "sample" {
			if err := json.Unmarshal([]byte(text), &x); err != nil {
				t.Fatal(err)
			}
			return x
		}
	}
	t.Fatalf("the stream has ended: %v", lines.Err())
	return x
}

// All browsers get the samples of one sampler, there is a bound of browsers, and the stream
// outlives the timeouts of a request.
func TestBrowsersShareSamples(t *testing.T) {
	b := &counting{Backend: apitest.Switch()}
	url := serve(t, b, Config{})
	var all []*bufio.Scanner
	for range maxReaders {
		lines, r := follow(t, url)
		if r.StatusCode != 200 {
			t.Fatalf("status %d", r.StatusCode)
		}
		all = append(all, lines)
	}
	if _, r := follow(t, url); r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one browser more: status %d", r.StatusCode)
	}
	first := next(t, all[0])
	if len(first.Groups) != len(b.GroupList) || first.Version.Version != "1" {
		t.Errorf("%+v", first)
	}
	for _, lines := range all {
		next(t, lines)
	}
	begin, asked := time.Now(), b.samples.Load()
	for time.Since(begin) < readTimeout+Interval {
		next(t, all[0])
	}
	if n := b.samples.Load() - asked; n > 2+int64(time.Since(begin)/Interval) {
		t.Errorf("%d samples in %v for %d browsers", n, time.Since(begin), len(all))
	}
}

// A browser that does not take its samples is dropped, and nobody waits for it. Without
// browsers the switch is asked seldom, and one that comes gets a sample at once.
func TestSlowBrowserIsDropped(t *testing.T) {
	b := &counting{Backend: apitest.Switch()}
	ctx, cancel := context.WithCancel(t.Context())
	s := newSampler(ctx, b, api.Version{}, time.Millisecond, time.Hour)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.run()
	}()
	slow, _, _ := s.join()
	fast, leave, _ := s.join()
	for range 20 {
		if _, ok := <-fast; !ok {
			t.Fatal("the fast one is dropped")
		}
	}
	n := 0
	for range slow {
		n++
	}
	if n > cap(slow) {
		t.Errorf("%d samples for a browser that takes none", n)
	}
	leave()
	before := b.samples.Load()
	for last := int64(-1); last != before; time.Sleep(20 * time.Millisecond) {
		last, before = before, b.samples.Load()
	}
	in, _, ok := s.join()
	if !ok {
		t.Fatal("no browser is admitted any more")
	}
	<-in // the events of before
	<-in
	if b.samples.Load() == before {
		t.Error("no sample for a browser that comes later")
	}
	cancel()
	for range in {
	}
	<-ended
}

// A sample is bounded, has the member that a group waits for, and counts what it leaves out.
func TestSampleIsBounded(t *testing.T) {
	var list []api.Group
	for i := range maxGroups + 5 {
		g := api.Group{IP: netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), WaitsFor: netip.AddrFrom4([4]byte{10, 0, 0, 99})}
		for m := range 100 {
			g.Members = append(g.Members, api.Member{IP: netip.AddrFrom4([4]byte{10, 0, 0, byte(m)}), Live: true, Lag: m})
		}
		list = append(list, g)
	}
	s := newSampler(t.Context(), &apitest.Backend{GroupList: list, Totals: &api.Stats{}}, api.Version{}, Interval, idleInterval)
	x, err := s.sample(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	kept, out := x.Groups, x.LeftOut
	members := 0
	for _, g := range kept {
		members += len(g.Members)
		if len(g.Members)+g.MembersLeftOut != 100 || g.Members[0].IP != g.WaitsFor {
			t.Fatalf("%d members and %d left out, first %s", len(g.Members), g.MembersLeftOut, g.Members[0].IP)
		}
	}
	if len(kept) != maxGroups || out != 5 || members > maxMembers {
		t.Errorf("%d groups, %d left out, %d members", len(kept), out, members)
	}
}
