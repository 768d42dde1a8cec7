// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Path is where the metrics are.
const Path = "/metrics"

// maxScrapes bounds the scrapes at one time.
const maxScrapes = 4

// Handler returns the handler of Path.
func Handler(b Backend, c Config) http.Handler {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(&collector{backend: b, config: c})
	all := promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, ErrorHandling: promhttp.HTTPErrorOnError})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != Path {
			http.Error(w, "the metrics are at "+Path, http.StatusNotFound)
			return
		}
		all.ServeHTTP(w, r)
	})
}
