// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package testbed sets up what the demo and the benchmarks play on: a lab.Star
// with a real gleamd in its middle, configured for it, running and answering.
package testbed

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/tools/lab"
)

// readyTimeout bounds how long gleamd may take to answer on its socket.
const readyTimeout = 20 * time.Second

// KeyID is the number of the key with which envelopes are authenticated.
const KeyID = 1

// Config describes a stage. The zero value of the optional fields takes the
// default in brackets.
type Config struct {
	Dir    string         // holds a directory for each run: configuration, key and socket
	Star   lab.StarConfig // with a Name it can be kept
	Gleamd string         // the daemon's path [see Daemon]
	Groups int            // the most groups [16]
	// Members is the most members of a group [the star's hosts].
	Members int
	// More are further lines of gleamd's configuration file. []
	More string
}

// Testbed is the lab with a running gleamd in the middle.
type Testbed struct {
	Star   *lab.Star
	Daemon *lab.Process
	Client *api.Client
	Key    []byte // with which envelopes are authenticated; its number is KeyID
	Keep   bool   // Close leaves the lab up; its Config has a name

	dir string // configuration and socket
}

// Build makes the lab, writes the configuration, starts gleamd and waits until
// it answers. It first removes what runs that were killed have left. On error
// there is nothing to close.
func Build(ctx context.Context, c Config) (_ *Testbed, err error) {
	if err := cleanStale(c.Dir); err != nil {
		return nil, fmt.Errorf("clean up after an earlier run: %w", err)
	}
	s := &Testbed{Key: make([]byte, 32)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if _, err := rand.Read(s.Key); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	if s.Star, err = lab.NewStar(c.Star); err != nil {
		return nil, err
	}
	s.dir = Kept(c.Dir, c.Star.Name)
	if c.Star.Name == "" {
		s.dir = filepath.Join(c.Dir, fmt.Sprintf("run-%d", os.Getpid()))
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a place for gleamd's configuration: %w", err)
	}
	if err := s.start(ctx, &c); err != nil {
		return nil, err
	}
	return s, nil
}

// PortMTU is the ports' MTU for a path MTU: a usual one where that is enough.
func PortMTU(pmtu int) int { return max(1500, pmtu+152) }

// start runs gleamd in the switch's namespace and waits until it answers.
func (s *Testbed) start(ctx context.Context, c *Config) error {
	path := c.Gleamd
	if path == "" {
		var err error
		if path, err = Daemon(); err != nil {
			return err
		}
	}
	file := filepath.Join(s.dir, "gleamd.yaml")
	if err := os.WriteFile(file, []byte(s.config(c)), 0o600); err != nil {
		return err
	}
	var err error
	if s.Daemon, err = s.Star.Switch.Start(exec.Command(path, "--config", file)); err != nil {
		return err
	}
	s.Client = api.Dial(s.Socket())
	deadline := time.NewTimer(readyTimeout)
	defer deadline.Stop()
	for {
		if _, err = s.Client.Version(ctx); err == nil {
			return nil
		}
		select {
		case <-s.Daemon.Done():
			return fmt.Errorf("gleamd ended at once: %w", errors.Join(s.Daemon.Wait(), errors.New(s.Daemon.Output())))
		case <-deadline.C:
			return fmt.Errorf("gleamd does not answer after %v: %w\n%s", readyTimeout, err, s.Daemon.Output())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// config is gleamd's configuration file.
func (s *Testbed) config(c *Config) string {
	groups, members := c.Groups, c.Members
	if groups == 0 {
		groups = 16
	}
	if members == 0 {
		members = c.Star.Hosts
	}
	return s.Star.Config() + fmt.Sprintf(`envelope:
  keys:
    - {id: %d, secret: "hex:%s"}
api:
  socket: %s
limits:
  groups: %d
  members_per_group: %d
rings: {rx: 1024, tx: 1024, fill: 1024, completion: 1024}
umem: {frames: %d, frame_size: 4096}
%s`, KeyID, hex.EncodeToString(s.Key), s.Socket(), groups, max(members, 2), umemFrames(len(s.Star.Ports)), c.More)
}

// Socket is gleamd's.
func (s *Testbed) Socket() string { return SocketIn(s.dir) }

// SocketIn is gleamd's socket in the directory of a run. It has a directory of its
// own, which gleamd makes: it could not remove the socket from one of root's.
func SocketIn(dir string) string { return filepath.Join(dir, "run", "gleamd.sock") }

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

// umemFrames is enough for every port's rings: a power of two.
func umemFrames(ports int) int {
	n := 8192
	for n < ports*1024 {
		n *= 2
	}
	return n
}

// Daemon finds gleamd: beside this program, else in PATH.
func Daemon() (string, error) {
	if self, err := os.Executable(); err == nil {
		if p := filepath.Join(filepath.Dir(self), "gleamd"); isFile(p) {
			return p, nil
		}
	}
	p, err := exec.LookPath("gleamd")
	if err != nil {
		return "", errors.New("gleamd is neither beside this program nor in PATH: `make build` makes both, or name it by --gleamd")
	}
	return p, nil
}

func isFile(p string) bool {
	i, err := os.Stat(p)
	return err == nil && i.Mode().IsRegular()
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
