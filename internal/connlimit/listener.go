// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package connlimit

import "net"

// Listener accepts connections into a Pool, which they leave when they are closed.
type Listener struct {
	net.Listener
	pool *Pool
}

// Listen returns a listener with at most max of ln's connections at a time.
func Listen(ln net.Listener, max int) *Listener { return &Listener{ln, New(max)} }

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{c, l.pool.Enter(c)}, nil
}

type conn struct {
	net.Conn
	place *Place
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.place.Leave()
	return c.Conn.Close()
}

// PlaceOf returns the place of a connection that a Listener has accepted, also if TLS is above
// it. It is nil for any other.
func PlaceOf(c net.Conn) *Place {
	for {
		switch x := c.(type) {
		case *conn:
			return x.place
		case interface{ NetConn() net.Conn }:
			c = x.NetConn()
		default:
			return nil
		}
	}
}
