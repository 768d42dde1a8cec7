// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"context"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds on connections between two exchanges.
const (
	maxKept   = 256              // connections of an Identity: beyond it the oldest is closed
	keptIdle  = 60 * time.Second // the time from one exchange to the next
	helloWait = time.Second      // the time from the next hello until the master collects: else the member dials anew
)

// kept are connections that have carried a group's exchange to its end, and wait for that
// of the next group. Their other side has proved that it has the key. A connection has one
// entry, here or in an exchange.
type kept struct {
	idle time.Duration // keptIdle

	mu      sync.Mutex
	closed  bool
	list    []*conn       // oldest first
	changed chan struct{} // closed, and replaced, when a connection has its next hello
	waits   sync.WaitGroup
}

// dialled and accepted name the place of a connection: the address that a member has
// dialled, or a master's listener.
func dialled(addr string) string      { return "to " + addr }
func accepted(ln net.Listener) string { return "at " + ln.Addr().String() }

// end gives a connection back after a clean exchange, and closes it otherwise.
func (c *conn) end() error {
	if c.home == nil || !c.clean || c.r.Buffered() > 0 {
		return c.c.Close()
	}
	next := *c
	next.clean, next.again = false, true
	c.c, c.clean = spent, false
	return c.home.keep(&next)
}

// spent is in the place of a connection that has been given back.
var spent = func() net.Conn {
	a, b := net.Pipe()
	_, _ = a.Close(), b.Close()
	return a
}()

// keep adds a connection. That of a member, which speaks first, is ready at once; that of
// a master is when a hello has begun.
func (k *kept) keep(c *conn) error {
	_ = c.c.SetDeadline(time.Time{})
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		return c.c.Close()
	}
	k.list = append(k.list, c)
	var oldest *conn
	if len(k.list) > maxKept {
		oldest = k.list[0]
	}
	c.expiry = time.AfterFunc(k.idle, func() { k.drop(c) })
	if c.ready = !c.listens; c.listens {
		k.waits.Go(func() { k.await(c) })
	}
	k.mu.Unlock()
	if oldest != nil {
		k.drop(oldest)
	}
	return nil
}

// await waits for the next hello, or for the end of the connection.
func (k *kept) await(c *conn) {
	_, err := c.r.Peek(1)
	if err != nil {
		k.drop(c)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.Contains(k.list, c) {
		c.ready = true
		c.expiry.Reset(min(helloWait, k.idle))
		close(k.changed)
		k.changed = make(chan struct{})
	}
}

// drop closes a connection, if it is here still.
func (k *kept) drop(c *conn) {
	k.mu.Lock()
	i := slices.Index(k.list, c)
	if i >= 0 {
		k.remove(i)
	}
	k.mu.Unlock()
	if i >= 0 {
		_ = c.c.Close()
	}
}

// remove takes out a connection. The caller holds the mutex.
func (k *kept) remove(i int) {
	k.list[i].expiry.Stop()
	k.list = slices.Delete(k.list, i, i+1)
}

// take returns the newest connection of a place that is ready, nil if there is none, and
// the channel by which another one is announced.
func (k *kept) take(via string) (*conn, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, c := range slices.Backward(k.list) {
		if c.ready && c.via == via {
			k.remove(i)
			return c, nil
		}
	}
	return nil, k.changed
}

// next waits, until ctx ends, for a connection of a place; nil then.
func (k *kept) next(ctx context.Context, via string) *conn {
	for ctx.Err() == nil {
		c, changed := k.take(via)
		if c != nil {
			return c
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil
}

// close closes all connections, and those that are given back later.
func (k *kept) close() {
	k.mu.Lock()
	k.closed = true
	all := slices.Clone(k.list)
	k.mu.Unlock()
	for _, c := range all {
		k.drop(c)
	}
	k.waits.Wait()
}

// quiet reports whether the other side has neither closed a connection nor sent anything.
func quiet(c net.Conn) bool {
	t, ok := c.(interface{ NetConn() net.Conn })
	if !ok {
		return false
	}
	s, ok := t.NetConn().(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	var b [1]byte
	e := raw.Control(func(fd uintptr) { _, _, err = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT) })
	return e == nil && err == unix.EAGAIN
}

// DialMaster returns a member's side of an exchange with the master that listens at addr:
// over a connection that has served them for another group, or over a new one
// (Identity.Dial).
func DialMaster(ctx context.Context, id *Identity, addr string) (*Member, error) {
	for {
		c, _ := id.kept.take(dialled(addr))
		if c == nil {
			break
		}
		if quiet(c.c) {
			return &Member{c: c, redial: func(ctx context.Context) (*conn, error) { return dialMaster(ctx, id, addr) }}, nil
		}
		_ = c.c.Close()
	}
	c, err := dialMaster(ctx, id, addr)
	if err != nil {
		return nil, err
	}
	return &Member{c: c}, nil
}

func dialMaster(ctx context.Context, id *Identity, addr string) (*conn, error) {
	s, err := id.Dial(ctx, addr, Exchange)
	if err != nil {
		return nil, err
	}
	x := newConn(s, "master")
	id.lend(x, dialled(addr))
	return x, nil
}

// AcceptMember returns the next member at ln whose hello is admitted: that of a new
// connection (Identity.Accept), or of one that has served another group.
func AcceptMember(ctx context.Context, ln net.Listener, a Admission) (*Peer, error) {
	c, err := a.Identity.accept(ctx, ln, Exchange, true)
	if err != nil {
		return nil, err
	}
	return handshake(ctx, c, a)
}

// acceptedConn is a master's side of an exchange over a new connection of ln.
func (id *Identity) acceptedConn(c net.Conn, ln net.Listener) *conn {
	x := newConn(c, "member")
	x.listens = true
	id.lend(x, accepted(ln))
	return x
}

// lend has a connection come back after a clean exchange.
func (id *Identity) lend(c *conn, via string) {
	if id.send != 0 { // in plain text each exchange has a new one
		c.home, c.via = &id.kept, via
	}
}

// Close closes the connections that are kept for further groups.
func (id *Identity) Close() { id.kept.close() }
