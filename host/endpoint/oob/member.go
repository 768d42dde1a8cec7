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
type Member struct{ c *conn }

// NewMember takes ownership of a connection to the master.
func NewMember(c net.Conn) *Member { return &Member{newConn(c, "master")} }

// Offer sends this member's connection state and waits, until ctx ends, for the master to
// collect that of all members and to describe the group.
func (m *Member) Offer(ctx context.Context, info ConnInfo) (Group, error) {
	if err := info.Check(); err != nil {
		return Group{}, fmt.Errorf("own connection state: %w", err)
	}
	if err := m.c.send(ctx, message{Type: typeHello, Member: &info}); err != nil {
		// The master may have sent the reason before it closed the connection.
		if _, e := m.c.receive(ctx, typeGroup); isRemote(e) {
			return Group{}, e
		}
		return Group{}, err
	}
	reply, err := m.c.receive(ctx, typeGroup)
	if err != nil {
		return Group{}, err
	}
	if reply.Group.IP.BitLen() != info.IP.BitLen() {
		return Group{}, fmt.Errorf("%s: GroupIP %s is not of the family of our address %s", m.c.peer, reply.Group.IP, info.IP)
	}
	return *reply.Group, nil
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
	return err
}

// Fail sends the master the reason for giving up, and closes the connection.
func (m *Member) Fail(err error) { m.c.refuse(err) }

// Close closes the connection.
func (m *Member) Close() error { return m.c.c.Close() }
