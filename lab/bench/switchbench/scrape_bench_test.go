// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/observe/metrics"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// BenchmarkScrapedSwitch is the CPU time of all threads of a switch with four ports and a group for a
// scrape: answers of control loop and worker, and collection of garbage included.
func BenchmarkScrapedSwitch(b *testing.B) {
	labtest.Require(b)
	s, err := openTestbed(gleamdMethod, targetCase, -1, -1)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	cpu := func() time.Duration {
		d, err := processCPU()
		if err != nil {
			b.Fatal(err)
		}
		return d
	}
	start := cpu()
	for b.Loop() {
		// A new handler: one answers a second scrape within half a second as it did the first.
		w, h := httptest.NewRecorder(), metrics.Handler(s.engine, metrics.Config{Groups: config.Default().Metrics.Groups})
		if h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, metrics.Path, nil)); w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
	b.ReportMetric(float64(cpu()-start)/float64(b.N), "CPU-ns/scrape")
}
