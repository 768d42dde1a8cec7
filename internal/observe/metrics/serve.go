// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
)

// Path is where the metrics are.
const Path = "/metrics"

// maxScrapes bounds the scrapes at one time.
const maxScrapes = 4

// Handler returns the handler of Path, which answers in Prometheus' text format.
func Handler(b Backend, cfg Config) http.Handler {
	c := &collector{backend: b, config: cfg}
	scrapes := make(chan struct{}, maxScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != Path {
			http.Error(w, "the metrics are at "+Path, http.StatusNotFound)
			return
		}
		select {
		case scrapes <- struct{}{}:
			defer func() { <-scrapes }()
		default:
			http.Error(w, fmt.Sprintf("%d scrapes are under way: try again later", maxScrapes), http.StatusServiceUnavailable)
			return
		}
		text := c.collect().text()
		w.Header().Set("Content-Type", contentType)
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			_, _ = w.Write(text)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write(text)
		_ = z.Close()
	})
}
