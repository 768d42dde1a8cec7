// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"reflect"

	"go.uber.org/zap"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/internal/doctor"
)

// remoteAPI is the API over TCP. A nil one does nothing.
type remoteAPI struct {
	api *api.Remote
	ln  net.Listener
	log *zap.Logger
}

// listenRemote opens the API over TCP; nil if the configuration has none.
func listenRemote(ctx context.Context, c *config.API, log *zap.Logger) (*remoteAPI, error) {
	if !c.Listen.IsValid() {
		return nil, nil
	}
	r := &remoteAPI{log: log}
	var err error
	if r.api, err = api.NewRemote(c.Identity(), c.Operators, func(cause string, from net.Addr, err error, count uint64) {
		log.Warn("a connection to the API over TCP is refused", zap.String("cause", cause), zap.Stringer("from", from), zap.String("error", truncate(err.Error())), zap.Uint64("refused", count))
	}); err != nil {
		return nil, err
	}
	if r.ln, err = api.ListenTCP(ctx, "api.listen", c.Listen); err != nil {
		return nil, err
	}
	r.warnOfEnd(c)
	log.Info("the API over TCP is open", zap.Stringer("address", r.ln.Addr()), zap.Strings("operators", c.Operators))
	return r, nil
}

// truncate bounds what a stranger can write into the log.
func truncate(s string) string { return s[:min(len(s), 200)] }

// reload takes the certificates and operators of next, which have been read and checked.
func (r *remoteAPI) reload(now, next *config.API) {
	if r == nil || reflect.DeepEqual(now.Identity(), next.Identity()) && reflect.DeepEqual(now.Operators, next.Operators) {
		return
	}
	if err := r.api.Set(next.Identity(), next.Operators); err != nil {
		r.log.Error("the API over TCP keeps its certificates", zap.Error(err))
		return
	}
	r.warnOfEnd(next)
}

// warnOfEnd tells that the certificate has ended, or ends soon.
func (r *remoteAPI) warnOfEnd(c *config.API) {
	if doctor.EndsSoon(c) {
		r.log.Warn("the certificate of the API over TCP has ended, or ends soon: clients refuse it then; replace the file and type gleam reload",
			zap.Stringer("certificate", c.Certificate), zap.Time("end", c.Identity().Expiry()))
	}
}

func (r *remoteAPI) close() {
	if r != nil {
		r.ln.Close()
	}
}
