// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"net"

	"go.uber.org/zap"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/config"
	"github.com/gleam-rdma/gleam/internal/web"
)

// livePage is the page for browsers. A nil one does nothing.
type livePage struct {
	ln     net.Listener
	config web.Config
	log    *zap.Logger
}

// listenWeb opens the page's address; nil if the configuration has none.
func listenWeb(ctx context.Context, c *config.Web, log *zap.Logger) (*livePage, error) {
	if !c.Listen.IsValid() {
		return nil, nil
	}
	ln, err := api.ListenTCP(ctx, "web.listen", c.Listen)
	if err != nil {
		return nil, err
	}
	scheme := "http"
	if f := c.Identity(); f != nil {
		t, err := f.PageServer()
		if err != nil {
			ln.Close()
			return nil, err
		}
		ln, scheme = tls.NewListener(ln, t), "https"
	} else if !c.Listen.Addr().IsLoopback() {
		log.Warn("the live page is served without TLS: its token and all that it shows cross the network in the clear", zap.Stringer("address", ln.Addr()))
	}
	log.Info("the live page is open", zap.String("url", scheme+"://"+ln.Addr().String()+"/"))
	return &livePage{ln: ln, log: log, config: web.Config{Names: c.Names, Token: c.Token.Bytes()}}, nil
}

// serve serves the page until ctx ends. The switch goes on without it.
func (p *livePage) serve(ctx context.Context, b web.Backend, v api.Version) {
	if p == nil {
		return
	}
	if err := web.Serve(ctx, p.ln, b, v, p.config); err != nil {
		p.log.Error("the live page has ended; restart gleamd to have it again", zap.Error(err))
	}
}

func (p *livePage) close() {
	if p != nil {
		p.ln.Close()
	}
}
