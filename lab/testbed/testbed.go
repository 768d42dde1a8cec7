// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package testbed sets up what experiments play on, the demo, the benchmarks and the tests: a lab.Star
// with a real gleamd in its middle (Build), or a fabric with one in every switch (BuildFabric), configured
// for it, running and answering; hosts with software devices (Open, OpenAll), which form groups (Join) or
// pairs (Connect); and traffic between them (Messages, Send, Repeat).
package testbed

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
)

// Config describes a stage. The zero value of the optional fields takes the
// default in brackets.
type Config struct {
	Dir    string         // holds a directory for each run: configuration, key and socket
	Star   lab.StarConfig // the star; with a Name it can be kept
	Gleamd string         // the daemon's path [see Daemon]
	Groups int            // the most groups [16]
	// Members is the most members of a group [the star's hosts].
	Members int
	// Frames of gleamd's UMEM, a power of two [enough for the rings of every port].
	Frames int
	// State has gleamd keep its groups over a restart, in memory.
	State bool
	// FastPath turns the fast path on, at hosts that take its copies.
	FastPath bool
	// More are further lines of gleamd's configuration file. []
	More string
	// Envelope and Limits are further lines of these sections. []
	Envelope, Limits string
}

// Testbed is the lab with a running gleamd in the middle.
type Testbed struct {
	Star   *lab.Star
	Gleamd *Gleamd
	Client *api.Client
	Key    Key  // the key of envelopes
	Keep   bool // Close leaves the lab up; its Config has a name

	dir string // configuration and socket
}

// Build makes the lab, writes the configuration, starts gleamd and waits until
// it answers. It first removes what runs that were killed have left. On error
// there is nothing to close.
func Build(ctx context.Context, c Config) (_ *Testbed, err error) {
	if err := cleanStale(c.Dir); err != nil {
		return nil, fmt.Errorf("clean up after an earlier run: %w", err)
	}
	s := &Testbed{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.Key, err = newKey(); err != nil {
		return nil, err
	}
	if c.FastPath {
		c.Star.Redirects = true
		c.More += fastPathOn
	}
	if s.Star, err = lab.NewStar(c.Star); err != nil {
		return nil, err
	}
	s.dir = runDir(c.Dir, c.Star.Name)
	if c.State {
		c.More += "state: " + stateIn(s.dir) + "\n"
	}
	set := settings{
		key: s.Key, groups: cmp.Or(c.Groups, 16), members: cmp.Or(c.Members, c.Star.Hosts), more: c.More, envelope: c.Envelope, limits: c.Limits,
		ring: 1024, frames: cmp.Or(c.Frames, umemFrames(len(s.Star.Ports), 1024)),
	}
	g, err := newGleamd(c.Gleamd, s.dir, s.Star.Switch, set.config(s.Star.Config(), s.dir))
	if err != nil {
		return nil, err
	}
	if err := g.Start(ctx); err != nil {
		return nil, err
	}
	s.Gleamd, s.Client = g, g.Client
	return s, nil
}

// newKey makes a key for envelopes.
func newKey() ([]byte, error) {
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return key, nil
}

// runDir is the directory of this run's files, below Config.Dir.
func runDir(dir, lab string) string {
	if lab != "" {
		return Kept(dir, lab)
	}
	return filepath.Join(dir, fmt.Sprintf("run-%d", os.Getpid()))
}

// PortMTU is the ports' MTU for a path MTU: a usual one where that is enough.
func PortMTU(pmtu int) int { return max(1500, pmtu+152) }

// Socket is gleamd's.
func (s *Testbed) Socket() string { return SocketIn(s.dir) }

// Kept is the directory, below Config.Dir, of the lab of that name.
func Kept(dir, lab string) string { return filepath.Join(dir, lab) }

// cleanStale removes what runs that were killed have left. Namespaces without a
// name went with their process; there are named ones and directories to remove.
func cleanStale(dir string) error {
	removed, err := lab.CleanStale()
	for _, name := range removed {
		err = errors.Join(err, os.RemoveAll(Kept(dir, name)))
	}
	dirs, globErr := filepath.Glob(filepath.Join(dir, "run-*"))
	for _, d := range dirs {
		var pid int
		if _, scanErr := fmt.Sscanf(filepath.Base(d), "run-%d", &pid); scanErr == nil && unix.Kill(pid, 0) == unix.ESRCH {
			err = errors.Join(err, os.RemoveAll(d))
		}
	}
	return errors.Join(err, globErr)
}

// Close ends all that Build made, or leaves it up if it is to be kept.
func (s *Testbed) Close() error {
	var errs []error
	if s.Keep && s.Star != nil {
		errs = append(errs, s.Star.Lab.Keep())
	}
	if s.Star != nil {
		errs = append(errs, s.Star.Close())
	}
	if s.dir != "" && !s.Keep {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}
