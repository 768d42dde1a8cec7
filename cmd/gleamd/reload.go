// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/config"
	"github.com/gleam-rdma/gleam/config/trusted"
)

// reloadable is the switch with its configuration file: SIGHUP and the API reload that one
// after the other.
type reloadable struct {
	backend
	mu     sync.Mutex
	reload func(api.Reload) (*api.Reloaded, error)
	remote *remoteAPI // nil: there is none
	page   *livePage  // nil: there is none

	scraping *scraping // nil: there is none
}

// Stats implements api.Backend.
func (b *reloadable) Stats() (*api.Stats, error) {
	s, err := b.backend.Stats()
	if s != nil && b.remote != nil {
		s.Remote = b.remote.api.Stats()
	}
	return s, err
}

// Reload implements api.Reloader.
func (b *reloadable) Reload(q api.Reload) (*api.Reloaded, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reload(q)
}

// hear reloads the configuration at every SIGHUP, until ctx ends. A file that cannot be
// reloaded leaves everything as it was.
func (d *daemon) hear(ctx context.Context, log *zap.Logger, b *reloadable) {
	for {
		select {
		case <-d.hangup:
			if _, err := b.Reload(api.Reload{}); err != nil {
				log.Error("gleamd has reloaded nothing at SIGHUP: the configuration is that of before", zap.Error(err))
			}
		case <-ctx.Done():
			return
		}
	}
}

// reloader reads the configuration file again.
type reloader struct {
	file    string
	files   *trusted.Files // files that the configuration names, as they were at the start
	start   *config.Config // the configuration that gleamd was started with
	running *config.Config // what is in effect
	eng     engine
	remote  *remoteAPI // nil: there is none
	log     *zap.Logger
}

// unreadable adds to an error what lets the user that gleamd runs as read files.
func unreadable(err error, paths []string) error {
	group := strconv.Itoa(os.Getegid())
	if g, err := user.LookupGroupId(group); err == nil {
		group = g.Name
	}
	list := strings.Join(paths, " ")
	return fmt.Errorf("%w\n%s cannot be read by the user that gleamd runs as (uid %d), and is new or has changed since the start, when root read it; run: chgrp %s %s && chmod 640 %s; then gleam reload", err, list, os.Geteuid(), group, list, list)
}

// reload reads the file again and applies what needs no restart. After an error nothing has
// changed.
func (r *reloader) reload(q api.Reload) (*api.Reloaded, error) {
	next, err := config.LoadBy(r.file, r.files)
	denied := r.files.TakeDenied()
	if errors.Is(err, fs.ErrPermission) {
		denied = []string{r.file}
	}
	switch {
	case len(denied) > 0:
		return nil, unreadable(err, denied)
	case err != nil:
		return nil, err
	}
	if next.Envelope.Insecure != r.running.Envelope.Insecure {
		return nil, fmt.Errorf("%s: envelope.insecure has changed, which needs a restart: %s", r.file, config.RestartReason("envelope.insecure"))
	}
	var x api.Reloaded
	for _, s := range r.running.Compare(next, r.start) {
		switch {
		case !s.Changed:
			x.Unchanged = append(x.Unchanged, s.Key)
		case s.Restart == "":
			x.Applied = append(x.Applied, s.Key)
		default:
			x.NeedsRestart = append(x.NeedsRestart, api.NeedsRestart{Key: s.Key, Reason: s.Restart})
		}
	}
	next.KeepUntilRestart(r.running, r.start)
	if len(x.Applied) > 0 {
		lost, err := r.eng.Reconfigure(r.running, next, q.Force)
		if x.MembersLost, x.GroupsEnded = lost.Members, lost.Groups; err != nil {
			var bad *config.Error
			if errors.As(err, &bad) {
				bad.File, bad.Line = r.file, config.KeyLine(r.file, bad.Key)
				return nil, bad
			}
			return nil, fmt.Errorf("%s: %w", r.file, err)
		}
		r.remote.reload(&r.running.API, &next.API)
		r.running = next
	}
	for _, k := range r.running.Envelope.Keys {
		x.Keys = append(x.Keys, k.ID)
	}
	for _, n := range x.NeedsRestart {
		r.log.Warn("a key of the configuration has changed that a reload does not apply: restart gleamd", zap.String("key", n.Key), zap.String("reason", n.Reason))
	}
	r.log.Info("the configuration is reloaded", zap.Strings("applied", x.Applied), zap.Int("unchanged", len(x.Unchanged)), zap.Uint16s("keys", x.Keys), zap.Int("members_lost", x.MembersLost), zap.Int("groups_ended", len(x.GroupsEnded)))
	return &x, nil
}
