// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package web serves gleamd's live page: groups, trees, ports, members' lag and stalls, and
// events, as they change. The page is read only. Its data are the types of package api.
package web

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/api"
)

// Limits of browsers.
const (
	maxConns    = 64 // connections
	maxReaders  = 16 // connections that may get samples
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

// Backend has what the page shows.
type Backend interface {
	// BusiestGroups returns at most n groups, and how many others there are.
	BusiestGroups(n int) (list []api.Group, leftOut int, err error)
	Ports() ([]api.Port, error)
	Topology() (*api.Topology, error)
	Stats() (*api.Stats, error)
	Events(ctx context.Context, after uint64) (*api.Events, error)
	ExplainACK(group netip.Addr) (*api.ACKExplanation, error)
}

// site answers requests for the page.
type site struct {
	guarded http.Handler
	sampler *sampler
	files   http.Handler
}

// newSite makes the page of b. Its samples end with ctx.
func newSite(ctx context.Context, b Backend, v api.Version, c Config) (*site, error) {
	files, err := fs.Sub(page, "page")
	if err != nil {
		return nil, err
	}
	s := &site{sampler: newSampler(ctx, b, v, Interval, idleInterval), files: http.FileServerFS(files)}
	c.Section = "web"
	s.guarded = Guard(c, http.HandlerFunc(s.serve))
	return s, nil
}

// Serve serves the page of b on ln until ctx ends. It closes ln.
func Serve(ctx context.Context, ln net.Listener, b Backend, v api.Version, c Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := newSite(ctx, b, v, c)
	if err != nil {
		return err
	}
	var sampling sync.WaitGroup
	defer sampling.Wait()
	defer cancel()
	sampling.Go(s.sampler.run)
	return ServeHandler(ctx, ln, c.TLS, s, "live page")
}

// ServeHTTP implements http.Handler.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.guarded.ServeHTTP(w, r) }

// serve answers a request of somebody who may read.
func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/live":
		s.live(w, r)
	case "/history":
		s.history(w, r)
	default:
		s.files.ServeHTTP(w, r)
	}
}

// history answers with the series of the switch, of its ports, or of one group.
func (s *site) history(w http.ResponseWriter, r *http.Request) {
	of := r.URL.Query().Get("of")
	if group, ok := strings.CutPrefix(of, "group/"); ok {
		ip, err := netip.ParseAddr(group)
		if of = "group/" + ip.String(); err != nil {
			of = ""
		}
	} else if of != "switch" && of != "port" {
		of = ""
	}
	if of == "" {
		http.Error(w, "of which series? of=switch, of=port or of=group/ADDRESS", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.sampler.history.read(of + "/")) // else the browser has gone
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
