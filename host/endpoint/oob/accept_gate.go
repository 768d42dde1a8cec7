// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/gleam-rdma/gleam/internal/connlimit"
)

// maxAttempts bounds the connections without a completed hello.
const maxAttempts = 64

// acceptGate accepts connections at a listener. A connection without a completed hello
// costs a goroutine, a descriptor and a deadline; beyond maxAttempts one is displaced.
type acceptGate struct {
	refused    *refusals
	attempts   *connlimit.Pool // connections without a completed hello
	handshakes sync.WaitGroup
}

func newAcceptGate(id *Identity) *acceptGate {
	return &acceptGate{refused: newRefusals(id), attempts: connlimit.New(maxAttempts)}
}

// errDisplaced is the cause of a displaced connection's end.
var errDisplaced = errors.New("had not authenticated itself when others came")

// open accepts connections at ln until ctx ends, and runs greet for each, concurrently,
// so that a silent connection does not delay others. A connection for which greet returns
// an error is refused. greet calls settle when the other side is identified; from then on
// the connection cannot be displaced. A connection of ln that has served another group and
// has its next hello is passed to again, unless again is nil. open returns after the last
// greet and again.
func (d *acceptGate) open(ctx context.Context, ln net.Listener, greet func(ctx context.Context, c net.Conn, settle func() error) error, again func(ctx context.Context, c *conn) error) error {
	release := interruptAccept(ctx, ln)
	within, cancel := context.WithCancelCause(ctx)
	defer func() {
		cancel(context.Cause(ctx))
		d.handshakes.Wait()
		release()
	}()
	if again != nil {
		d.handshakes.Go(func() { d.reopen(within, ln, again) })
	}
	for {
		c, err := ln.Accept()
		now := time.Now()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
			time.Sleep(10 * time.Millisecond) // other connections will be closed
			continue
		default:
			return fmt.Errorf("accept: %w", err)
		}
		from := addrOf(c.RemoteAddr())
		if d.refused.tooMany(from, now) {
			_ = c.Close()
			d.refused.add(from, now, fmt.Errorf("%s: too many connections from there have failed", c.RemoteAddr()))
			continue
		}
		v := d.attempts.Enter(c)
		d.handshakes.Go(func() {
			identified := false
			err := greet(within, c, func() error {
				if identified = identified || v.Leave(); !identified {
					return errDisplaced
				}
				return nil
			})
			if err != nil && !identified && !v.Leave() {
				err = fmt.Errorf("%s %w", c.RemoteAddr(), errDisplaced)
			}
			if err != nil && within.Err() == nil {
				d.refused.add(from, time.Now(), err)
			}
		})
	}
}

// reopen runs again, concurrently, for each kept connection of ln that has its next hello.
func (d *acceptGate) reopen(ctx context.Context, ln net.Listener, again func(ctx context.Context, c *conn) error) {
	for {
		c := d.refused.id.kept.next(ctx, accepted(ln))
		if c == nil {
			return
		}
		d.handshakes.Go(func() {
			if err := again(ctx, c); err != nil && ctx.Err() == nil {
				d.refused.add(addrOf(c.c.RemoteAddr()), time.Now(), err)
			}
		})
	}
}

// addrOf returns the IP of a TCP address; the zero Addr if it is none.
func addrOf(a net.Addr) netip.Addr {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return t.AddrPort().Addr().Unmap().WithZone("")
}

// interruptAccept makes Accept on ln return when ctx ends. The function that it returns
// undoes that, and makes ln usable again. A listener without deadlines is closed instead.
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
