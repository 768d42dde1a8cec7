// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

	"go.uber.org/zap"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/control"
	"github.com/gleam-rdma/gleam/internal/observe/metrics"
	"github.com/gleam-rdma/gleam/internal/observe/web"
)

// scraping is where metrics are served. A nil one does nothing.
type scraping struct {
	ln      net.Listener // nil: at the API alone
	tls     *tls.Config  // nil: plain HTTP
	config  *config.Metrics
	handler http.Handler // the handler of make
	log     *zap.Logger
}

// listenMetrics opens the address of the metrics; nil if the configuration has none.
func listenMetrics(ctx context.Context, c *config.Metrics, log *zap.Logger) (*scraping, error) {
	if !c.On() {
		return nil, nil
	}
	s := &scraping{config: c, log: log}
	if !c.Listen.IsValid() {
		return s, nil
	}
	var err error
	if s.ln, s.tls, err = listenPage(ctx, "metrics", c.Page(), log); err != nil {
		return nil, err
	}
	log.Info("metrics are served", zap.String("url", scheme(s.tls)+"://"+s.ln.Addr().String()+metrics.Path))
	return s, nil
}

// of makes the handler of the metrics of b.
func (s *scraping) of(b metrics.Backend, v api.Version) {
	if s == nil {
		return
	}
	c := metrics.Config{Groups: s.config.Groups, Version: v}
	for _, r := range control.Reasons() {
		if r.Normal {
			c.Unneeded = append(c.Unneeded, r.Name)
		} else {
			c.Drops = append(c.Drops, r.Name)
		}
	}
	s.handler = metrics.Handler(b, c)
}

// serve serves the metrics until ctx ends. The switch goes on without them.
func (s *scraping) serve(ctx context.Context) {
	if s == nil || s.ln == nil {
		return
	}
	guarded := web.Guard(web.Config{Names: s.config.Names, Token: s.config.Token.Bytes(), Section: "metrics"}, s.handler)
	if err := web.ServeHandler(ctx, s.ln, s.tls, guarded, "metrics"); err != nil {
		s.log.Error("the metrics have ended; restart gleamd to have them again", zap.Error(err))
	}
}

func (s *scraping) close() {
	if s != nil && s.ln != nil {
		s.ln.Close()
	}
}

// Metrics implements api.Scraped.
func (b *reloadable) Metrics() http.Handler {
	if b.scraping == nil || !b.scraping.config.Socket {
		return nil
	}
	return b.scraping.handler
}
