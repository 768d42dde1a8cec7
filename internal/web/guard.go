// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/netutil"
)

// Config is who may read.
type Config struct {
	Names []string // by which readers may ask, beside localhost and addresses
	Token []byte   // that they must give, in hexadecimal digits, as password; none: they need not

	Section string // of the configuration that has these, for messages
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
// changes nothing.
func Guard(c Config, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		switch {
		case !c.knowsHost(r.Host):
			http.Error(w, fmt.Sprintf("this page is not asked for by the name %q; a name belongs into %s.names of gleamd's configuration", r.Host, c.Section), http.StatusMisdirectedRequest)
		case isForeign(r):
			http.Error(w, "this page is not for other pages", http.StatusForbidden)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, r.Method+" is not possible: this page changes nothing", http.StatusMethodNotAllowed)
		case !c.hasToken(r):
			w.Header().Set("WWW-Authenticate", `Basic realm="gleamd: any name, the token as password", charset="UTF-8"`)
			http.Error(w, fmt.Sprintf("this page needs the token of %s.token_file as the password, with any name", c.Section), http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// ServeHandler serves h on ln, within limits for readers, until ctx ends. It closes ln. what is
// the name of what is served, for errors.
func ServeHandler(ctx context.Context, ln net.Listener, h http.Handler, what string) error {
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	err := srv.Serve(netutil.LimitListener(ln, maxConns))
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
