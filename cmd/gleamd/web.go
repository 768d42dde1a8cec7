// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"net"

	"go.uber.org/zap"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/observe/web"
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
	ln, t, err := listenPage(ctx, "web", c, log)
	if err != nil {
		return nil, err
	}
	log.Info("the live page is open", zap.String("url", scheme(t)+"://"+ln.Addr().String()+"/"))
	return &livePage{ln: ln, log: log, config: web.Config{Names: c.Names, Token: c.Token.Bytes(), TLS: t}}, nil
}

// listenPage opens an address that a section of the configuration has. t is what TLS asks for;
// nil without certificates.
func listenPage(ctx context.Context, section string, c *config.Web, log *zap.Logger) (ln net.Listener, t *tls.Config, err error) {
	if ln, err = api.ListenTCP(ctx, section+".listen", c.Listen); err != nil {
		return nil, nil, err
	}
	f := c.Identity()
	if f == nil {
		if !c.Listen.Addr().IsLoopback() {
			log.Warn("a listener serves without TLS: the token and all that is shown cross the network in the clear", zap.String("section", section), zap.Stringer("address", ln.Addr()))
		}
		return ln, nil, nil
	}
	if t, err = f.PageServer(); err != nil {
		ln.Close()
		return nil, nil, err
	}
	return ln, t, nil
}

// scheme is that of URLs.
func scheme(t *tls.Config) string {
	if t == nil {
		return "http"
	}
	return "https"
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
