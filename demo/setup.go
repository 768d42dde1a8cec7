// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package demo

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
	"github.com/gleam-rdma/gleam/lab"
)

// readyTimeout bounds how long gleamd may take to answer on its socket.
const readyTimeout = 20 * time.Second

// stage is the lab with a running gleamd in the middle.
type stage struct {
	star   *lab.Star
	daemon *lab.Process
	client *api.Client
	dir    string // configuration, key and socket
	key    []byte // with which envelopes are authenticated
	keep   bool
}

// build makes the lab, writes the configuration and starts gleamd.
func build(ctx context.Context, o *Options) (_ *stage, err error) {
	if err := cleanStale(); err != nil {
		return nil, fmt.Errorf("clean up after an earlier run: %w", err)
	}
	c := lab.StarConfig{Hosts: o.Members, MTU: portMTU(o.MTU)}
	if o.Keep {
		c.Name = fmt.Sprintf("demo%d", os.Getpid())
	}
	s := &stage{key: make([]byte, 32), keep: o.Keep}
	defer func() {
		if err != nil {
			s.keep = false
			err = errors.Join(err, s.close())
		}
	}()
	if _, err := rand.Read(s.key); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	if s.star, err = lab.NewStar(c); err != nil {
		return nil, err
	}
	s.dir = keptDir(c.Name)
	if c.Name == "" {
		s.dir = filepath.Join(runDir, fmt.Sprintf("run-%d", os.Getpid()))
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a place for gleamd's configuration: %w", err)
	}
	if err := s.start(ctx, o); err != nil {
		return nil, err
	}
	return s, nil
}

// portMTU is the ports' MTU for a path MTU: a usual one where that is enough.
func portMTU(pmtu int) int { return max(1500, pmtu+152) }

// start runs gleamd in the switch's namespace and waits until it answers.
func (s *stage) start(ctx context.Context, o *Options) error {
	path, err := daemonPath(o.Gleamd)
	if err != nil {
		return err
	}
	config := s.star.Config() + fmt.Sprintf(`envelope:
  keys:
    - {id: 1, secret: "hex:%s"}
api:
  socket: %s
limits:
  groups: 16
  members_per_group: %d
rings: {rx: 1024, tx: 1024, fill: 1024, completion: 1024}
umem: {frames: %d, frame_size: 4096}
`, hex.EncodeToString(s.key), s.socket(), max(o.Members, 2), umemFrames(o.Members))
	file := filepath.Join(s.dir, "gleamd.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	if s.daemon, err = s.star.Switch.Start(exec.Command(path, "--config", file)); err != nil {
		return err
	}
	s.client = api.Dial(s.socket())
	deadline := time.NewTimer(readyTimeout)
	defer deadline.Stop()
	for {
		if _, err = s.client.Version(ctx); err == nil {
			return nil
		}
		select {
		case <-s.daemon.Done():
			return fmt.Errorf("gleamd ended at once: %w", errors.Join(s.daemon.Wait(), errors.New(s.daemon.Output())))
		case <-deadline.C:
			return fmt.Errorf("gleamd does not answer after %v: %w\n%s", readyTimeout, err, s.daemon.Output())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *stage) socket() string { return socketOf(s.dir) }

func socketOf(dir string) string { return filepath.Join(dir, "gleamd.sock") }

// runDir holds a directory for each demo: configuration, key and socket.
const runDir = "/run/gleam/demo"

// keptDir is the directory of a lab that has a name.
func keptDir(lab string) string { return filepath.Join(runDir, lab) }

// cleanStale removes what runs that were killed have left. Namespaces without a
// name went with their process; there are named ones and directories to remove.
func cleanStale() error {
	removed, err := lab.CleanStale()
	for _, name := range removed {
		err = errors.Join(err, os.RemoveAll(keptDir(name)))
	}
	dirs, globErr := filepath.Glob(filepath.Join(runDir, "run-*"))
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

// daemonPath finds gleamd: as told, else beside this program, else in PATH.
func daemonPath(told string) (string, error) {
	if told != "" {
		return told, nil
	}
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

// close ends all that build made, or leaves it up if it is to be kept.
func (s *stage) close() error {
	var errs []error
	if s.keep && s.star != nil {
		errs = append(errs, s.star.Lab.Keep())
	}
	if s.star != nil {
		errs = append(errs, s.star.Close())
	}
	if s.dir != "" && !s.keep {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}
