// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/observe/metrics"
)

// observation is a way to observe gleamd, whose cost is measured.
type observation struct {
	name string
	what string // a description for people
	// begin changes a gleamd that runs, which end takes back. Where gleamd always has the
	// observation, begin takes it away, and builtIn is set.
	begin   func(*testbed) (end func() error, err error)
	builtIn bool
}

// observations are measured in turn. The first one changes nothing: its ratio shows how
// exact the others are.
var observations = []observation{
	{name: "nothing", what: "nothing: gleamd against itself", begin: observeNothing},
	{name: "metrics", what: "metrics, scraped each second", begin: scrapeMetrics},
	{name: "trace-other", what: "a trace of another group", begin: traceOtherGroup},
	{name: "trace-nobody", what: "a trace of the group and of a member that it does not have", begin: traceNoMember},
	{name: "looks", what: "looks every 200 ms for what delays groups, which gleamd always has", begin: stopLooking, builtIn: true},
}

func observeNothing(*testbed) (end func() error, err error) {
	return func() error { return nil }, nil
}

// scrapeInterval is shorter than that of most scrapers.
const scrapeInterval = time.Second

// scrapeMetrics asks for gleamd's metrics now, and then each second.
func scrapeMetrics(s *testbed) (end func() error, err error) {
	h := metrics.Handler(s.engine, metrics.Config{Groups: config.Default().Metrics.Groups})
	ctx, stop := context.WithCancel(context.Background())
	var scraper sync.WaitGroup
	failed := 0
	scraper.Go(func() {
		tick := time.NewTicker(scrapeInterval)
		defer tick.Stop()
		for ctx.Err() == nil {
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, metrics.Path, nil)); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "gleam_groups 1") {
				failed++
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return func() error {
		stop()
		scraper.Wait()
		if failed > 0 {
			return fmt.Errorf("%d scrapes have failed", failed)
		}
		return nil
	}, nil
}

// stranger is an address that is no member's, and of the prefix of groups.
var stranger = netip.MustParseAddr("10.77.254.200")

func traceOtherGroup(s *testbed) (end func() error, err error) {
	return observeByTrace(s, &api.Trace{Group: stranger})
}

func traceNoMember(s *testbed) (end func() error, err error) {
	return observeByTrace(s, &api.Trace{Group: groupIP, Members: []netip.Addr{stranger}})
}

// observeByTrace has a trace run that no packet fits.
func observeByTrace(s *testbed, t *api.Trace) (end func() error, err error) {
	run, err := s.engine.Trace(t)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	packets := 0
	go func() {
		ended <- run(ctx, func(l *api.TraceLine, _ bool) error {
			if l.Packet != nil {
				packets++
			}
			return nil
		})
	}()
	return func() error {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the trace has ended: %w", err)
		}
		if packets > 0 {
			return fmt.Errorf("a trace of %s with members %v has recorded %d packets of %s", t.Group, t.Members, packets, groupIP)
		}
		return nil
	}, nil
}

func stopLooking(s *testbed) (end func() error, err error) {
	return func() error { return s.engine.SetLooks(true) }, s.engine.SetLooks(false)
}
