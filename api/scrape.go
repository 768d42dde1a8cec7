// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import "net/http"

// Scraped is a Backend with metrics for Prometheus, which are served as GET /metrics.
type Scraped interface {
	Metrics() http.Handler // nil: they are not served here
}

// metricsRoute is not described by openapi.json: its answer is Prometheus's text.
var metricsRoute = route{method: "GET", path: "/metrics", summary: "Metrics for Prometheus, if metrics.socket is set", do: (*handler).scrape}

// scrape answers with the handler of the metrics.
func (h *handler) scrape(r *http.Request, _ string) (any, error) {
	if b, ok := h.backend.(Scraped); ok {
		if m := b.Metrics(); m != nil {
			return m, nil
		}
	}
	return nil, refuse(http.StatusNotFound, "metrics are not served here: set metrics.socket in gleamd's configuration")
}
