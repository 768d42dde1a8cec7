// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/gleam-rdma/gleam/internal/connlimit"
)

// Config is who may read, and how.
type Config struct {
	Names []string    // the names by which readers may ask, beside localhost and addresses
	Token []byte      // the password that they must give, in hexadecimal digits; none: they need not
	TLS   *tls.Config // nil: plain HTTP

	Section string // the section of the configuration that has these, for messages
}

// headers keep other origins' pages and scripts from what is served.
var headers = map[string]string{
	"Content-Security-Policy":      "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"Cache-Control":                "no-store",
}

// Guard returns a handler that passes on to next the requests of those who may read; next
// changes nothing. The connection of any other request is closed after the answer.
func Guard(c Config, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.mayRead(w, r) {
			place, _ := r.Context().Value(placeKey{}).(*connlimit.Place)
			if place != nil && !place.Settle() {
				panic(http.ErrAbortHandler) // its connection is closed
			}
			next.ServeHTTP(w, r)
			if place != nil {
				place.Wait()
			}
		}
	})
}

// placeKey has the place of a request's connection.
type placeKey struct{}

// mayRead reports whether a request is of somebody who may read; else it has the answer.
func (c *Config) mayRead(w http.ResponseWriter, r *http.Request) bool {
	for name, value := range headers {
		w.Header().Set(name, value)
	}
	refuse := func(status int, text string) {
		w.Header().Set("Connection", "close")
		http.Error(w, text, status)
	}
	switch {
	case !c.knowsHost(r.Host):
		refuse(http.StatusMisdirectedRequest, fmt.Sprintf("this page is not asked for by the name %q; a name belongs into %s.names of gleamd's configuration", r.Host, c.Section))
	case isForeign(r):
		refuse(http.StatusForbidden, "this page is not for other pages")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		refuse(http.StatusMethodNotAllowed, r.Method+" is not possible: this page changes nothing")
	case !c.hasToken(r):
		w.Header().Set("WWW-Authenticate", `Basic realm="gleamd: any name, the token as password", charset="UTF-8"`)
		refuse(http.StatusUnauthorized, fmt.Sprintf("this page needs the token of %s.token_file as the password, with any name", c.Section))
	default:
		return true
	}
	return false
}

// ServeHandler serves h, which is guarded, on ln, within limits for readers, until ctx ends. It
// closes ln. t is nil for plain HTTP. what is the name of what is served, for errors.
//
// If there are too many connections one gives way that waits for a request of somebody who may
// read, or has not proved anything by TLS.
func ServeHandler(ctx context.Context, ln net.Listener, t *tls.Config, h http.Handler, what string) error {
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, placeKey{}, connlimit.PlaceOf(c))
		},
	}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	var in net.Listener = connlimit.Listen(ln, maxConns)
	if t != nil {
		in = tls.NewListener(in, t)
	}
	err := srv.Serve(in)
	if ctx.Err() != nil && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("%s on %s: %w", what, ln.Addr(), err)
}

// knowsHost reports whether a request may name the server so. A page that has another name
// point to this server's address (DNS rebinding) sends that name, never an address.
func (c *Config) knowsHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return true
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return name == "localhost" || slices.Contains(c.Names, name)
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
func (c *Config) hasToken(r *http.Request) bool {
	if len(c.Token) == 0 {
		return true
	}
	_, given, ok := r.BasicAuth()
	if !ok {
		given, ok = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	token, err := hex.DecodeString(strings.TrimSpace(given))
	return ok && err == nil && subtle.ConstantTimeCompare(token, c.Token) == 1
}
