// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// Member is a member's side of the exchange: Offer, then Ready. Close
// ends it at any point.
type Member struct {
	c      *conn
	redial func(ctx context.Context) (*conn, error) // the way to a new connection in place of a kept one
}

// NewMember takes ownership of a connection to the master.
func NewMember(c net.Conn) *Member { return &Member{c: newConn(c, "master")} }

// Offer sends this member's connection state and waits, until ctx ends, for the master to
// collect that of all members and to describe the group.
func (m *Member) Offer(ctx context.Context, info ConnInfo) (Group, error) {
	if err := info.Check(); err != nil {
		return Group{}, fmt.Errorf("own connection state: %w", err)
	}
	reply, err := m.greet(ctx, info)
	if err != nil && m.c.again && m.c.cut && ctx.Err() == nil {
		// The master has closed the kept connection meanwhile, and not taken the hello.
		c, e := m.redial(ctx)
		if e != nil {
			return Group{}, fmt.Errorf("%w; connect again: %w", err, e)
		}
		_ = m.c.c.Close()
		m.c = c
		reply, err = m.greet(ctx, info)
	}
	if err != nil {
		return Group{}, err
	}
	if reply.Group.IP.BitLen() != info.IP.BitLen() {
		return Group{}, fmt.Errorf("%s: GroupIP %s is not of the family of our address %s", m.c.peer, reply.Group.IP, info.IP)
	}
	return *reply.Group, nil
}

// greet sends the hello and waits for the answer.
func (m *Member) greet(ctx context.Context, info ConnInfo) (message, error) {
	if err := m.c.send(ctx, message{Type: typeHello, Member: &info}); err != nil {
		// The master may have sent the reason before it closed the connection.
		if reply, e := m.c.receive(ctx, typeGroup); isRemote(e) {
			return reply, e
		}
		return message{}, err
	}
	return m.c.receive(ctx, typeGroup)
}

func isRemote(err error) bool {
	var r *RemoteError
	return errors.As(err, &r)
}

// Ready tells the master that this member's queue pair is connected and that it answers
// envelopes, and waits until all members have confirmed the registration.
func (m *Member) Ready(ctx context.Context) error {
	if err := m.c.send(ctx, message{Type: typeReady}); err != nil {
		return err
	}
	_, err := m.c.receive(ctx, typeRegistered)
	m.c.clean = err == nil
	return err
}

// Fail sends the master the reason for giving up, and closes the connection.
func (m *Member) Fail(err error) { m.c.refuse(err) }

// Close ends the exchange. After Ready a connection of DialMaster stays for the next group
// (Identity.Close), otherwise the connection is closed.
func (m *Member) Close() error { return m.c.end() }
