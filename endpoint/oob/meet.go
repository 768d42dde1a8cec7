// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// interruptAccept makes Accept on ln return when ctx ends. The function it
// returns ends that, and makes ln usable again. A listener without deadlines is
// closed instead.
func interruptAccept(ctx context.Context, ln net.Listener) (release func()) {
	d, ok := ln.(interface{ SetDeadline(time.Time) error })
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		if ok {
			_ = d.SetDeadline(time.Unix(1, 0))
		} else {
			_ = ln.Close()
		}
	})
	return func() {
		if stop() {
			return
		}
		<-interrupted
		if ok {
			_ = d.SetDeadline(time.Time{})
		}
	}
}

// Accept accepts one connection, or returns why ctx ended.
func Accept(ctx context.Context, ln net.Listener) (net.Conn, error) {
	defer interruptAccept(ctx, ln)()
	c, err := ln.Accept()
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return c, err
}

// Call connects to members that listen at addrs and lets each say who it is.
// The peers come in the order of addrs. The first that cannot be had fails all.
func Call(ctx context.Context, addrs []string, check func(*ConnInfo) error) ([]*Peer, error) {
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
		c, err := Dial(ctx, addr)
		if err != nil {
			return fail(fmt.Errorf("connect to the member at %s: %w", addr, err))
		}
		p, err := Greet(ctx, c, check)
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
