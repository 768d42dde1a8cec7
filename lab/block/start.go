// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Run starts the gateway and calls serve once the device is usable; it ends when serve returns, or ctx ends.
// Sockets are opened in the network namespace of the calling process.
func Run(ctx context.Context, cfg GatewayConfig, serve func(context.Context, *Gateway) error) (err error) {
	g := &Gateway{cfg: cfg}
	g.changed.L = &g.mu
	closer, err := g.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer()) }()
	var work sync.WaitGroup
	defer work.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g.ctx = ctx
	ip := cfg.GroupIP
	for i, addr := range cfg.Replicas {
		m := &member{g: g, addr: addr, dirty: newExtents(cfg.Size)}
		if m.ip, err = hostOf(addr); err != nil {
			return err
		}
		if i == 0 || cfg.Unicast {
			g.lanes = append(g.lanes, &lane{g: g, groupIP: ip})
			ip = ip.Next()
		}
		m.lane = g.lanes[len(g.lanes)-1]
		m.lane.members = append(m.lane.members, m)
		g.members = append(g.members, m)
	}
	for _, m := range g.members {
		work.Go(func() { m.run(ctx) })
	}
	for _, l := range g.lanes {
		work.Go(func() { l.run(ctx) })
	}
	work.Go(func() { g.watch(ctx) })
	if err := g.awaitStart(cancel); err != nil {
		return err
	}
	if err := g.Flush(); err != nil { // with the new generation
		return err
	}
	cfg.Log("the device is ready")
	return serve(ctx, g)
}

// awaitStart waits until the current replicas are known.
func (g *Gateway) awaitStart(cancel context.CancelCauseFunc) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	said, force := "", time.Now().Add(stallAfter)
	for !g.started {
		hs := make([]*hello, len(g.members))
		for i, m := range g.members {
			hs[i] = m.hello
		}
		c, err := choose(hs, g.cfg.Create, g.cfg.Force && time.Now().After(force))
		var fatal *startError
		switch {
		case errors.As(err, &fatal):
			cancel(err)
			return err
		case err != nil && err.Error() != said:
			said = err.Error()
			g.cfg.Log(said)
		case err == nil:
			g.start(c)
			return nil
		}
		if err := g.pause(time.Now().Add(time.Hour)); err != nil {
			return err
		}
	}
	return nil
}

// choice is what a gateway starts with.
type choice struct {
	device  string
	seq     uint64
	current []int // replicas
}

// startError is one that waiting does not mend.
type startError struct{ error }

// choose chooses the replicas that are current, from what those say that have answered. The newest one says which
// stores were current beside it. Each of these must have answered, since one of them may have gone on alone: what
// is newer than the newest was flushed by a part of them.
func choose(hs []*hello, create, force bool) (c choice, err error) {
	stores, newest := make(map[string]bool), -1
	empty, silent := 0, 0
	for i, h := range hs {
		switch {
		case h == nil:
			silent++
			continue
		case stores[h.Store]:
			return c, &startError{fmt.Errorf("two replicas have store %s: one is a copy of the other's file; give one of them an empty file", h.Store)}
		case len(h.Members) == 0:
			empty++
		case c.device == "":
			c.device = h.Device
		case c.device != h.Device:
			return c, &startError{fmt.Errorf("the replicas hold different devices, %s and %s", c.device, h.Device)}
		}
		stores[h.Store] = true
		c.seq = max(c.seq, h.Seq, h.Applied)
		if len(h.Members) > 0 && h.Consistent && (newest < 0 || h.Applied > hs[newest].Applied || h.Applied == hs[newest].Applied && h.Live && !hs[newest].Live) {
			newest = i
		}
	}
	c.seq = (c.seq>>generation + 1) << generation
	switch {
	case create && c.device != "":
		return c, &startError{fmt.Errorf("device %s exists already: start without -create", c.device)}
	case create && silent > 0:
		return c, fmt.Errorf("waiting for %d replicas to make the device", silent)
	case create:
		c.device = strings.ToLower(rand.Text())
		for i := range hs {
			c.current = append(c.current, i)
		}
		return c, nil
	case silent == 0 && empty == len(hs):
		return c, &startError{errors.New("all replicas are empty: make the device by -create")}
	case newest < 0:
		return c, errors.New("waiting for a replica that was current")
	}
	var missing []string
	for _, s := range hs[newest].Members {
		if !stores[s] {
			missing = append(missing, s)
		}
	}
	if len(missing) > 0 && !force {
		slices.Sort(missing)
		return c, fmt.Errorf("waiting for the replicas with the stores %s: they may have newer writes (-force starts without them)", strings.Join(missing, ", "))
	}
	for i, h := range hs {
		same := h != nil && h.Live && h.Consistent && hs[newest].Live && h.Applied == hs[newest].Applied
		if i == newest || same && slices.Contains(hs[newest].Members, h.Store) {
			c.current = append(c.current, i)
		}
	}
	return c, nil
}

// start begins with the replicas that were chosen. The caller holds mu.
func (g *Gateway) start(c choice) {
	g.started, g.device, g.seq, g.completed = true, c.device, c.seq, c.seq
	for i, m := range g.members {
		switch {
		case slices.Contains(c.current, i):
			m.role, m.applied, m.store, m.boot = current, c.seq, m.hello.Store, m.hello.Boot
		case m.hello != nil:
			m.store, m.boot = m.hello.Store, m.hello.Boot
			m.confirmed = m.hello.Seq
			m.role = partial
			m.dirty.mark(0, g.cfg.Size)
		}
		if m.role != current {
			g.cfg.Log(fmt.Sprintf("replica %s is gone (since before the start)", m.addr))
		}
	}
	g.cfg.Log(fmt.Sprintf("device %s, generation %d, %d of %d replicas are current", c.device, c.seq>>generation, len(c.current), len(g.members)))
	g.changed.Broadcast()
}

// admit gives a replica that has just connected its role. The caller holds mu.
func (g *Gateway) admit(m *member) error {
	h := m.hello
	if !g.started {
		return nil // awaitStart does
	}
	for _, o := range g.members {
		if o != m && o.link != nil && o.store == h.Store {
			return fmt.Errorf("it has store %s, as %s: one is a copy of the other's file; give one of them an empty file", h.Store, o.addr)
		}
	}
	if h.Device != "" && h.Device != g.device && len(h.Members) > 0 {
		return fmt.Errorf("it holds device %s; this is %s", h.Device, g.device)
	}
	// A file of an earlier time has flushed less than this one had.
	known := m.store == h.Store && h.Device == g.device && h.Seq >= m.confirmed
	switch {
	case len(g.currentStores()) > 0:
		m.role = partial
		if !known {
			m.dirty.mark(0, g.cfg.Size)
			m.confirmed = 0
		}
		g.cfg.Log(fmt.Sprintf("replica %s is back, and lacks up to %d of %d blocks of %d bytes", m.addr, m.dirty.count(), (g.cfg.Size+blockSize-1)/blockSize, blockSize))
	case m.survivor && known && (h.Live && h.Applied >= m.applied || h.File && h.Boot == m.boot):
		m.role = current
		g.cfg.Log(fmt.Sprintf("replica %s is current again: it was the last one", m.addr))
	default:
		return errors.New("no current replica is left to bring it up to date from: it waits")
	}
	m.store, m.boot = h.Store, cmp.Or(h.Boot, m.boot)
	return nil
}
