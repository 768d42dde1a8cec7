// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package web serves gleamd's live page: groups, trees, ports, members' lag and stalls, and
// events, as they change. The page is read only. Its data are the types of package api.
package web

import (
	"context"
	"crypto/subtle"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/netutil"

	"github.com/gleam-rdma/gleam/api"
)

// Limits of browsers.
const (
	maxConns    = 64 // connections
	maxReaders  = 16 // of them, that may get samples
	maxHeader   = 16 << 10
	readTimeout = 5 * time.Second
	// writeTimeout bounds the time for one sample or file: a reader that takes longer is dropped.
	writeTimeout = 5 * time.Second
	idleTimeout  = time.Minute
	// retry is the time after which a browser asks again.
	retry = 2 * time.Second
)

//go:embed page
var page embed.FS

// Backend has what the page shows; an api.Backend has it all.
type Backend interface {
	Groups() ([]api.Group, error)
	Ports() ([]api.Port, error)
	Topology() (*api.Topology, error)
	Stats() (*api.Stats, error)
	Events(ctx context.Context, after uint64) (*api.Events, error)
}

// Config is who may read the page.
type Config struct {
	Names []string // by which browsers may ask for it, beside localhost and addresses
	Token []byte   // that they must give, in hexadecimal digits, as password; none: they need not
}

// site answers requests for the page.
type site struct {
	config  Config
	sampler *sampler
	files   http.Handler
}

// newSite makes the page of b. Its samples end with ctx.
func newSite(ctx context.Context, b Backend, v api.Version, c Config) (*site, error) {
	files, err := fs.Sub(page, "page")
	if err != nil {
		return nil, err
	}
	return &site{config: c, sampler: newSampler(ctx, b, v, Interval), files: http.FileServerFS(files)}, nil
}

// Serve serves the page of b on ln until ctx ends. It closes ln.
func Serve(ctx context.Context, ln net.Listener, b Backend, v api.Version, c Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := newSite(ctx, b, v, c)
	if err != nil {
		return err
	}
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	err = srv.Serve(netutil.LimitListener(ln, maxConns))
	if ctx.Err() != nil && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("live page on %s: %w", ln.Addr(), err)
}

// headers keep other origins' pages and scripts from the page.
var headers = map[string]string{
	"Content-Security-Policy":      "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"Cache-Control":                "no-store",
}

// ServeHTTP implements http.Handler.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range headers {
		w.Header().Set(name, value)
	}
	switch {
	case !s.knowsHost(r.Host):
		http.Error(w, fmt.Sprintf("this page is not asked for by the name %q; a name belongs into web.names of gleamd's configuration", r.Host), http.StatusMisdirectedRequest)
	case isForeign(r):
		http.Error(w, "this page is not for other pages", http.StatusForbidden)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, r.Method+" is not possible: this page changes nothing", http.StatusMethodNotAllowed)
	case !s.hasToken(r):
		w.Header().Set("WWW-Authenticate", `Basic realm="gleamd: any name, the token as password", charset="UTF-8"`)
		http.Error(w, "this page needs the token of web.token_file as the password, with any name", http.StatusUnauthorized)
	case r.URL.Path == "/live":
		s.live(w, r)
	default:
		s.files.ServeHTTP(w, r)
	}
}

// knowsHost reports whether a request may name the server so. A page that has another name
// point to this server's address (DNS rebinding) sends that name, never an address.
func (s *site) knowsHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return true
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return name == "localhost" || slices.Contains(s.config.Names, name)
}

// isForeign reports whether a page of another origin has made the request. A link to the page
// from elsewhere is none.
func isForeign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host != r.Host {
			return true
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
}

// hasToken reports whether the request has the token, where one is needed.
func (s *site) hasToken(r *http.Request) bool {
	if len(s.config.Token) == 0 {
		return true
	}
	_, given, ok := r.BasicAuth()
	if !ok {
		given, ok = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	token, err := hex.DecodeString(strings.TrimSpace(given))
	return ok && err == nil && subtle.ConstantTimeCompare(token, s.config.Token) == 1
}

// live sends samples as server-sent events, until the browser goes or is too slow.
func (s *site) live(w http.ResponseWriter, r *http.Request) {
	in, leave, ok := s.sampler.join()
	if !ok {
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d browsers look at this page already; try again when one has left", maxReaders), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	if r.Method == http.MethodHead {
		return
	}
	out := http.NewResponseController(w)
	send := func(text []byte) bool {
		if out.SetWriteDeadline(time.Now().Add(writeTimeout)) != nil {
			return false
		}
		_, err := w.Write(text)
		return err == nil && out.Flush() == nil
	}
	_ = out.SetReadDeadline(time.Time{}) // that of the request would end the answer
	if !send(fmt.Appendf(nil, "retry: %d\n\n", retry.Milliseconds())) {
		return
	}
	for {
		select {
		case text, ok := <-in:
			if !ok || !send(text) {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}
