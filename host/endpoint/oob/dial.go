// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// Accept returns the next connection at ln whose other side has the group's key and names
// the same use, or the cause of ctx's end with the connections refused meanwhile.
func (id *Identity) Accept(ctx context.Context, ln net.Listener, use string) (net.Conn, error) {
	c, err := id.accept(ctx, ln, use, false)
	if err != nil {
		return nil, err
	}
	return c.c, nil
}

// accept is Accept, which takes kept connections, too, if keptToo is true.
func (id *Identity) accept(ctx context.Context, ln net.Listener, use string, keptToo bool) (*conn, error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	d := newAcceptGate(id)
	var free atomic.Bool // no connection has been chosen yet
	free.Store(true)
	taken := make(chan *conn, 1)
	errSecond := errors.New("came second; it may try again")
	var again func(ctx context.Context, c *conn) error
	if keptToo {
		again = func(_ context.Context, c *conn) error {
			if !free.CompareAndSwap(true, false) {
				_ = c.c.Close() // the member dials anew
				return errSecond
			}
			taken <- c
			cancel()
			return nil
		}
	}
	err := d.open(inner, ln, func(ctx context.Context, c net.Conn, settle func() error) error {
		first := false
		take := func() error {
			if !free.CompareAndSwap(true, false) {
				return errSecond
			}
			first = true
			return settle()
		}
		s, err := id.server(ctx, c, use, take)
		if err == nil && id.send == 0 {
			err = take()
		}
		if err != nil {
			_ = c.Close()
			if first {
				free.Store(true)
			}
			return err
		}
		taken <- id.acceptedConn(s, ln)
		cancel()
		return nil
	}, again)
	select {
	case c := <-taken:
		return c, nil
	default:
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return nil, fmt.Errorf("%w%s", err, d.refused.describe())
}

// authTimeout bounds Dial's attempts after the other side has failed to prove that it has
// the key: a host that has the address only for a moment does not end a join.
const authTimeout = 2 * time.Second

// Dial connects to addr over TCP for a use, and checks that the other side has the
// group's key. While addr does not listen, it tries again until ctx ends: the two sides
// may be started in any order.
func (id *Identity) Dial(ctx context.Context, addr, use string) (net.Conn, error) {
	var d net.Dialer
	var last error
	var giveUp <-chan time.Time
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		c, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			c, err = id.client(ctx, c, use)
		}
		if err == nil {
			return c, nil
		}
		if ctx.Err() == nil {
			last = err
		}
		var bad *net.AddrError
		var dns *net.DNSError
		if errors.As(err, &bad) || errors.As(err, &dns) && dns.IsNotFound {
			return nil, err // another attempt would not help
		}
		if auth := (*AuthError)(nil); giveUp == nil && errors.As(err, &auth) {
			giveUp = time.After(authTimeout)
		}
		select {
		case <-giveUp:
			return nil, last
		default:
		}
		select {
		case <-ctx.Done():
			if last == nil {
				last = err
			}
			return nil, fmt.Errorf("%w (last: %w): is the other side started?", context.Cause(ctx), last)
		case <-time.After(pause):
		}
	}
}

// Call connects to members that listen at addrs and waits for their hellos. The peers are
// in the order of addrs. The first failure fails all.
func Call(ctx context.Context, addrs []string, a Admission) ([]*Peer, error) {
	var peers []*Peer
	fail := func(err error) ([]*Peer, error) {
		for _, p := range peers {
			p.Fail(err)
		}
		return nil, err
	}
	// One after the other: sockets must be opened by the calling thread, which
	// may be in a network namespace of its own.
	for _, addr := range addrs {
		c, err := a.Identity.Dial(ctx, addr, Exchange)
		if err != nil {
			return fail(fmt.Errorf("connect to the member at %s: %w", addr, err))
		}
		p, err := Handshake(ctx, c, a)
		if err == nil {
			err = duplicate(peers, p)
		}
		if err != nil {
			return fail(err)
		}
		peers = append(peers, p)
	}
	if len(peers) == 0 {
		return nil, errors.New("no members to call")
	}
	return peers, nil
}
