// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gleam-rdma/gleam/lab/fabric"
)

// FabricConfig describes a Fabric. The zero value of the optional fields takes the default
// in brackets.
type FabricConfig struct {
	Dir    string // holds a directory for each run, and below it one for each switch
	Fabric fabric.Config
	Gleamd string // the daemon's path [see Daemon]
	Groups int    // the most groups [16]
	// Members is the most members of a group [the fabric's hosts].
	Members int
	// State has each gleamd keep its groups over a restart, in memory.
	State bool
	// FastPath turns the fast path on in all switches, at hosts that take its copies.
	FastPath bool
	// FastPathOf, if set, returns the fast_path of the gleamd of a switch. Hosts take copies then.
	FastPathOf func(*fabric.Switch) string
	// More are further lines of the configuration file of each gleamd. []
	More string
	// API, if set, returns further lines of section api for the gleamd of a switch.
	API func(*fabric.Switch) string
}

// Fabric is a fabric with a running gleamd in every switch.
type Fabric struct {
	*fabric.Fabric
	Gleamds map[string]*Gleamd // gleamds by the switch's name
	Key     Key                // the key of envelopes

	wired     bool   // each link
	switchKey []byte // the key with which switches know each other
	dir       string
}

// fabricRing is the number of entries of a ring, less than a Testbed's, since there are many
// gleamds: each locks its UMEM into memory.
const fabricRing = 512

// routedTimeout bounds the time until all routes are there.
const routedTimeout = 30 * time.Second

// stopGrace is the time that gleamd has to end.
const stopGrace = 5 * time.Second

// BuildFabric makes the fabric, starts a gleamd in every switch, and waits until all answer
// and all routes are there. It first removes what runs that were killed have left. On error
// there is nothing to close.
func BuildFabric(ctx context.Context, c FabricConfig) (_ *Fabric, err error) {
	if err := cleanStale(c.Dir); err != nil {
		return nil, fmt.Errorf("clean up after an earlier run: %w", err)
	}
	c.Fabric.Redirects = c.Fabric.Redirects || c.FastPath || c.FastPathOf != nil
	if c.FastPath && c.FastPathOf == nil {
		c.More += fastPathOn
	}
	f := &Fabric{Gleamds: make(map[string]*Gleamd), wired: c.Fabric.Count, dir: runDir(c.Dir, c.Fabric.Name)}
	if f.Key, err = newKey(); err != nil {
		return nil, err
	}
	if f.switchKey, err = newKey(); err != nil {
		return nil, err
	}
	if f.Fabric, err = fabric.New(c.Fabric); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	for _, s := range f.Switches {
		dir := filepath.Join(f.dir, s.Name)
		if f.Gleamds[s.Name], err = newGleamd(c.Gleamd, dir, s.NS, f.config(&c, s, dir)); err != nil {
			return nil, fmt.Errorf("switch %s: %w", s.Name, err)
		}
	}
	if err := f.startAll(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, routedTimeout)
	defer cancel()
	return f, f.WaitRouted(ctx)
}

// config is the configuration file of the gleamd of s.
func (f *Fabric) config(c *FabricConfig, s *fabric.Switch, dir string) string {
	set := settings{
		key: f.Key, groups: cmp.Or(c.Groups, 16), members: cmp.Or(c.Members, len(f.Hosts)), more: c.More,
		ring: fabricRing, frames: umemFrames(len(s.Ports()), 2*fabricRing),
	}
	if c.State {
		set.more += "state: " + stateIn(dir) + "\n"
	}
	if c.FastPathOf != nil {
		set.more += "fast_path: " + c.FastPathOf(s) + "\n"
	}
	if c.API != nil {
		set.api = c.API(s)
	}
	return set.config(s.Config(f.switchKey), dir)
}

// startAll starts all gleamds at once.
func (f *Fabric) startAll(ctx context.Context) error {
	ended := make(chan error)
	for _, s := range f.Switches {
		go func() {
			err := f.Gleamds[s.Name].Start(ctx)
			if err != nil {
				err = fmt.Errorf("switch %s: %w", s.Name, err)
			}
			ended <- err
		}()
	}
	var errs []error
	for range f.Switches {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// Restart ends gleamd as an operator does, and starts it again.
func (g *Gleamd) Restart(ctx context.Context) error {
	if err := g.Process.Stop(stopGrace); err != nil {
		return err
	}
	return g.Start(ctx)
}

// Kill ends gleamd without a chance to do anything.
func (g *Gleamd) Kill() error {
	if err := g.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-g.Process.Done()
	return nil
}

// Isolate makes a switch fail as a whole: its gleamd is killed, and all links to other
// switches go down.
func (f *Fabric) Isolate(name string) error {
	g, s := f.Gleamds[name], f.Switch(name)
	if g == nil {
		return fmt.Errorf("there is no switch %s", name)
	}
	errs := []error{g.Kill()}
	for _, n := range s.Neighbours() {
		errs = append(errs, f.cut(name, n, true))
	}
	return errors.Join(errs...)
}

// cut cuts a link, or mends it: by its carrier, where it has a wire.
func (f *Fabric) cut(a, b string, cut bool) error {
	if f.wired {
		return f.SetCarrier(a, b, !cut)
	}
	return f.SetLink(a, b, !cut)
}

// Return is the opposite of Isolate. It returns when all switches have their routes.
func (f *Fabric) Return(ctx context.Context, name string) error {
	if err := f.Gleamds[name].Start(ctx); err != nil {
		return err
	}
	// The first time a link's ends have the routes of a fabric that lacks the later links.
	for range 2 {
		for _, n := range f.Switch(name).Neighbours() {
			if err := f.cut(name, n, false); err != nil {
				return err
			}
		}
	}
	return f.WaitRouted(ctx)
}

// Close ends all that BuildFabric made.
func (f *Fabric) Close() error {
	for _, g := range f.Gleamds {
		if g != nil {
			g.Client.Close()
		}
	}
	return errors.Join(f.Fabric.Close(), os.RemoveAll(f.dir))
}
