// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// connectionGate is a listener that admits connections as far as their role's share
// goes. Some beyond it are admitted to get a refusal; all others are closed at once.
type connectionGate struct {
	net.Listener
	access Access
	limits [numRoles]userShares
}

// gatedConn is a connection that counts until it is closed.
type gatedConn struct {
	net.Conn
	caller *connectedUser
	once   sync.Once
	leave  func()
}

// Accept implements net.Listener.
func (g *connectionGate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if admitted := g.admit(c); admitted != nil {
			return admitted, nil
		}
		c.Close()
	}
}

// admit returns nil for a connection beyond all shares.
func (g *connectionGate) admit(c net.Conn) net.Conn {
	peer, err := peerOf(c)
	if err != nil {
		return nil
	}
	who := &connectedUser{Peer: peer, role: g.access.role(peer)}
	return g.limits[who.role].admit(c, who)
}

// admit takes a connection into the share of its user. It returns nil for one beyond all
// shares.
func (s *userShares) admit(c net.Conn, who *connectedUser) net.Conn {
	user := who.user()
	if s.conns.take(user) {
		return &gatedConn{Conn: c, caller: who, leave: func() { s.conns.give(user) }}
	}
	if !s.refusals.take(user) {
		return nil
	}
	who.refused = busy("connections", s.conns, user)
	c.SetDeadline(time.Now().Add(refusalTimeout))
	return &gatedConn{Conn: c, caller: who, leave: func() { s.refusals.give(user) }}
}

// refusalTimeout bounds the life of a connection beyond its share.
const refusalTimeout = 2 * time.Second

// ReasonBusy means that the caller's user has too much under way: status 503.
const ReasonBusy = "busy"

func busy(what string, s *userShare, user string) error {
	return &statusError{http.StatusServiceUnavailable, Error{Reason: ReasonBusy, Message: fmt.Sprintf(
		"too many %s: %s may have %d at once, and all who may do no more than it %d; try again when some have ended", what, user, s.perUser, s.max)}}
}

// SetReadDeadline implements net.Conn. The server's own deadlines do not prolong the
// life of a connection beyond its share.
func (c *gatedConn) SetReadDeadline(t time.Time) error { return c.deadline(t, c.Conn.SetReadDeadline) }

// SetWriteDeadline implements net.Conn.
func (c *gatedConn) SetWriteDeadline(t time.Time) error {
	return c.deadline(t, c.Conn.SetWriteDeadline)
}

// SetDeadline implements net.Conn.
func (c *gatedConn) SetDeadline(t time.Time) error { return c.deadline(t, c.Conn.SetDeadline) }

func (c *gatedConn) deadline(t time.Time, set func(time.Time) error) error {
	if c.caller.refused != nil && (t.IsZero() || time.Until(t) > 0) {
		return nil
	}
	return set(t)
}

// Close implements net.Conn.
func (c *gatedConn) Close() error {
	c.once.Do(c.leave)
	return c.Conn.Close()
}
