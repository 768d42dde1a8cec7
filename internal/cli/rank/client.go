// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rank

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

// client is a process that the helper has groups for.
type client struct {
	h     *helper
	write func(b, rights []byte) error

	sending sync.Mutex
	mu      sync.Mutex
	groups  map[int]*group // the groups by the process's numbers
	events  []answer       // what has not been passed on yet
	passing bool           // true: pass runs
}

func newClient(h *helper, write func(b, rights []byte) error) *client {
	return &client{h: h, write: write, groups: make(map[int]*group)}
}

// serve answers requests until the process ends, and leaves its groups. The process may wait for the connection's end.
func (h *helper) serve(conn *net.UnixConn) {
	defer conn.Close()
	stop := context.AfterFunc(h.ctx, func() { _ = conn.Close() })
	defer stop()
	c := newClient(h, func(b, rights []byte) error {
		_, _, err := conn.WriteMsgUnix(b, rights, nil)
		return err
	})
	c.send(answer{}, nil)
	for b := make([]byte, MaxPacket+1); ; {
		n, _, _, _, err := conn.ReadMsgUnix(b, nil)
		if n == 0 || err != nil {
			c.leaveAll()
			return
		}
		c.handle(b[:n])
	}
}

// handle starts what a request asks for. Posts are in order; the others do not wait for each other.
func (c *client) handle(b []byte) {
	r, err := decode(b)
	if err != nil {
		c.answer(&r, err)
		return
	}
	if r.Op == "window" {
		c.window(&r)
		return
	}
	g := c.group(r.G)
	if g == nil {
		c.answer(&r, fmt.Errorf("g %d has no window", r.G))
		return
	}
	if r.Op == "post" {
		if err := g.post(c, &r); err != nil {
			c.answer(&r, err)
		}
		return
	}
	c.h.work.Go(func() {
		ctx, cancel := context.WithTimeoutCause(c.h.ctx, r.timeout(), fmt.Errorf("%s took longer than %v", r.Op, r.timeout()))
		defer cancel()
		switch r.Op {
		case "make":
			c.joined(&r, g, g.once(ctx, &r, g.make))
		case "join":
			c.joined(&r, g, g.once(ctx, &r, g.join))
		case "remove":
			c.answer(&r, g.remove(ctx, &r))
		case "leave":
			c.answer(&r, c.leave(r.G))
		}
	})
}

func (c *client) group(n int) *group {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.groups[n]
}

// window has the helper make a group's memory, or share it, and passes it on.
func (c *client) window(r *request) {
	if c.group(r.G) != nil {
		c.answer(r, fmt.Errorf("g %d has a window", r.G))
		return
	}
	g, err := c.h.open(c, r)
	if err != nil {
		c.answer(r, err)
		return
	}
	c.mu.Lock()
	c.groups[r.G] = g
	c.mu.Unlock()
	a := answer{Re: r.ID, G: r.G}
	if r.Master.here {
		a.At = g.ln.Addr().String()
	}
	c.send(a, unix.UnixRights(int(g.file.Fd())))
}

// leave takes the process out of a group.
func (c *client) leave(n int) error {
	c.mu.Lock()
	g := c.groups[n]
	delete(c.groups, n)
	c.mu.Unlock()
	if g == nil {
		return nil // another leave has
	}
	return c.h.leave(c, g)
}

// leaveAll leaves all groups at once.
func (c *client) leaveAll() {
	c.mu.Lock()
	var all sync.WaitGroup
	for n := range c.groups {
		all.Go(func() { _ = c.leave(n) })
	}
	c.mu.Unlock()
	all.Wait()
}

// answer says how a request has ended.
func (c *client) answer(r *request, err error) {
	a := answer{Re: r.ID, G: r.G}
	if err != nil {
		a.Error = err.Error()
	}
	c.send(a, nil)
}

// joined says how make or join has ended.
func (c *client) joined(r *request, g *group, err error) {
	if err != nil {
		c.answer(r, err)
		return
	}
	c.send(answer{Re: r.ID, G: r.G, QPN: g.qp.Info().QPN}, nil)
}

// tell sends a packet later: a process that is stopped holds up no other one.
func (c *client) tell(a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.events = append(c.events, a); !c.passing {
		c.passing = true
		c.h.work.Go(c.pass)
	}
}

// pass sends what tell was given, in order.
func (c *client) pass() {
	for {
		c.mu.Lock()
		events := c.events
		c.events, c.passing = nil, len(events) > 0
		c.mu.Unlock()
		if len(events) == 0 {
			return
		}
		for _, a := range events {
			c.send(a, nil)
		}
	}
}

// send sends a packet, with descriptors. That the process has ended is seen by serve.
func (c *client) send(a answer, rights []byte) {
	b, err := json.Marshal(a)
	if err != nil {
		panic(err) // a has only what can be
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	_ = c.write(b, rights)
}
