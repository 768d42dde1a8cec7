// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"
)

// maxAttempts bounds the connections without a completed hello.
const maxAttempts = 64

// acceptGate accepts connections at a listener. A connection without a completed hello
// costs a goroutine, a descriptor and a deadline. Beyond maxAttempts such a connection is
// displaced: the oldest one of the address that has the most. So an address that opens
// many connections displaces its own.
type acceptGate struct {
	refused *refusals

	mu         sync.Mutex
	attempts   []*connectionAttempt // oldest first
	handshakes sync.WaitGroup
}

type connectionAttempt struct {
	c         net.Conn
	from      netip.Addr
	displaced bool // closed to make room for others
}

// errDisplaced is the cause of a displaced connection's end.
var errDisplaced = errors.New("had not authenticated itself when others came")

// open accepts connections at ln until ctx ends, and runs greet for each, concurrently,
// so that a silent connection does not delay others. A connection for which greet returns
// an error is refused. greet calls settle when the other side is identified; from then on
// the connection cannot be displaced. open returns after the last greet.
func (d *acceptGate) open(ctx context.Context, ln net.Listener, greet func(ctx context.Context, c net.Conn, settle func() error) error) error {
	release := interruptAccept(ctx, ln)
	within, cancel := context.WithCancelCause(ctx)
	defer func() {
		cancel(context.Cause(ctx))
		d.handshakes.Wait()
		release()
	}()
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
		v := d.admit(c, from)
		d.handshakes.Go(func() {
			err := greet(within, c, func() error { return d.finish(v) })
			if err != nil && d.finish(v) != nil {
				err = fmt.Errorf("%s %w", c.RemoteAddr(), errDisplaced)
			}
			if err != nil && within.Err() == nil {
				d.refused.add(from, time.Now(), err)
			}
		})
	}
}

// admit adds a connection, and displaces one if there are too many.
func (d *acceptGate) admit(c net.Conn, from netip.Addr) *connectionAttempt {
	v := &connectionAttempt{c: c, from: from}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.attempts = append(d.attempts, v)
	if len(d.attempts) > maxAttempts {
		d.displace()
	}
	return v
}

// displace closes the oldest connection of the address that has the most.
func (d *acceptGate) displace() {
	count := make(map[netip.Addr]int)
	most := 0
	for _, v := range d.attempts {
		count[v.from]++
		most = max(most, count[v.from])
	}
	for i, v := range d.attempts {
		if count[v.from] == most {
			v.displaced = true
			_ = v.c.Close()
			d.attempts = slices.Delete(d.attempts, i, i+1)
			return
		}
	}
}

// finish removes v from the attempts, or returns errDisplaced if it was displaced.
func (d *acceptGate) finish(v *connectionAttempt) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v.displaced {
		return errDisplaced
	}
	d.attempts = slices.DeleteFunc(d.attempts, func(o *connectionAttempt) bool { return o == v })
	return nil
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
