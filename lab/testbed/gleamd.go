// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab"
)

// readyTimeout bounds how long gleamd may take to answer on its socket.
const readyTimeout = 20 * time.Second

// KeyID is the number of the key with which envelopes are authenticated.
const KeyID = 1

// Gleamd is gleamd in a namespace of a lab.
type Gleamd struct {
	Process *lab.Process // the last one that Start started
	Client  *api.Client

	path    string // the path of the program
	dir     string // configuration and socket
	ns      *lab.Namespace
	earlier string // what processes before the last one have written
}

// Output returns what gleamd has written, over all restarts.
func (g *Gleamd) Output() string { return g.earlier + g.Process.Output() }

// newGleamd writes the configuration of a gleamd into dir, which it makes. An empty path of
// the program is Daemon's.
func newGleamd(path, dir string, ns *lab.Namespace, config string) (*Gleamd, error) {
	if path == "" {
		var err error
		if path, err = Daemon(); err != nil {
			return nil, err
		}
	}
	g := &Gleamd{Client: api.Dial(SocketIn(dir)), path: path, dir: dir, ns: ns}
	err := os.MkdirAll(dir, 0o711)
	for _, step := range []func() error{
		func() error { return os.Chmod(filepath.Dir(dir), 0o711) },
		func() error { return os.WriteFile(g.File(), []byte(config), 0o640) },
		func() error { return os.Chown(g.File(), 0, user) },
		func() error { return os.Chown(dir, user, user) },
		func() error { return os.MkdirAll(stateIn(dir), 0o700) },
		func() error { return os.Chown(stateIn(dir), user, user) },
	} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("make a place for gleamd's configuration: %w", err)
	}
	return g, nil
}

// user is the one that gleamd becomes. Its group reads the configuration again at a reload.
const user = 61797

// stateIn is the folder of the state file.
func stateIn(dir string) string { return filepath.Join(dir, "state") }

// File is the file of the configuration.
func (g *Gleamd) File() string { return filepath.Join(g.dir, "gleamd.yaml") }

// Start runs gleamd and waits until it answers.
func (g *Gleamd) Start(ctx context.Context) (err error) {
	if g.Process != nil {
		g.earlier += g.Process.Output()
	}
	if g.Process, err = g.ns.Start(exec.Command(g.path, "--config", g.File())); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("gleamd does not answer after %v", readyTimeout))
	defer cancel()
	answers := make(chan error, 1)
	go func() { answers <- g.Client.WaitReady(ctx) }()
	select {
	case <-g.Process.Done():
		return fmt.Errorf("gleamd ended at once: %w", g.Process.Wait())
	case err := <-answers:
		if err != nil {
			return fmt.Errorf("%w: %w\n%s", context.Cause(ctx), err, g.Process.Output())
		}
		return nil
	}
}

// settings are the parts of gleamd's configuration that do not follow from the ports.
type settings struct {
	key             []byte
	groups, members int // the most
	ring, frames    int // entries of a ring, and frames of the UMEM
	more            string
	api             string // lines of section api
	envelope        string // lines of section envelope
	limits          string // lines of section limits
}

// config returns gleamd's configuration file: network has ports and group prefixes.
func (c *settings) config(network, dir string) string {
	return network + fmt.Sprintf(`user: %d
envelope:
  keys:
    - {id: %d, secret: "hex:%s"}
%sapi:
  socket: %s
%slimits:
  groups: %d
  members_per_group: %d
%srings: {rx: %[10]d, tx: %[10]d, fill: %[10]d, completion: %[10]d}
umem: {frames: %d, frame_size: 4096}
%s`, user, KeyID, hex.EncodeToString(c.key), c.envelope, SocketIn(dir), c.api, c.groups, max(c.members, 2), c.limits, c.ring, c.frames, c.more)
}

// umemFrames is enough for the rings of every port: a power of two.
func umemFrames(ports, ring int) int {
	n := 8 * ring
	for n < ports*ring {
		n *= 2
	}
	return n
}

// SocketIn is gleamd's socket in the directory of a run. It has a directory of its
// own, which gleamd makes: it could not remove the socket from one of root's.
func SocketIn(dir string) string { return filepath.Join(dir, "run", "gleamd.sock") }

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
