// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// Peer is the master's side of the exchange with one member.
type Peer struct {
	Info ConnInfo
	c    *conn
}

// String names the peer by its queue pair and its connection.
func (p *Peer) String() string {
	return fmt.Sprintf("%s QP 0x%x (%s)", p.Info.IP, uint32(p.Info.QPN), p.c.peer)
}

// helloTimeout bounds the time until a connection's hello. Members do any lengthy
// preparation before they connect.
const helloTimeout = 5 * time.Second

// Admission decides which members a master admits.
type Admission struct {
	Identity *Identity
	// Check may return a fault of a member, and may change the member's ConnInfo. nil
	// accepts all.
	Check func(*ConnInfo) error
	// OtherNetwork admits members whose address is not that of their connection: the
	// exchange uses another network than the group, or one that translates addresses.
	// Otherwise a member's address must be that of its connection.
	OtherNetwork bool
}

// check returns the reason why a peer is not admitted, or nil.
func (a *Admission) check(p *Peer) error {
	if from := addrOf(p.c.c.RemoteAddr()); from != p.Info.IP && !a.OtherNetwork {
		return fmt.Errorf("%s: it claims %s and is connected from %s: a member speaks for its own address only "+
			"(OtherNetwork, gleam perf's --other-network and GLEAM_OTHER_NETWORK are for exchanges over another network than the group's)",
			p, p.Info.IP, from)
	}
	if a.Check != nil {
		if err := a.Check(&p.Info); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

// Handshake waits for the hello of the member behind a connection, of Identity.Dial or
// Identity.Accept. It takes ownership of c, also on error.
func Handshake(ctx context.Context, c net.Conn, a Admission) (*Peer, error) {
	return handshake(ctx, newConn(c, "member"), a)
}

func handshake(ctx context.Context, c *conn, a Admission) (*Peer, error) {
	p := &Peer{c: c}
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	m, err := p.c.receive(ctx, typeHello)
	if err == nil {
		p.Info = *m.Member
		err = a.check(p)
	}
	if err != nil {
		p.c.refuse(err)
		return nil, err
	}
	return p, nil
}

// Collect accepts connections until n members, each of another IP, have sent their hello.
// A connection whose other side does not have the key, or violates the exchange, is
// closed and does not count; a connection at ln that has served another group counts like a
// new one; if ctx ends first the error repeats the faults of such
// connections. Collect stops accepting before it returns, so that ln, which stays open,
// may be used again.
func Collect(ctx context.Context, ln net.Listener, n int, a Admission) ([]*Peer, error) {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d := newAcceptGate(a.Identity)
	var mu sync.Mutex
	var peers []*Peer
	enter := func(ctx context.Context, c *conn, settle func() error) error {
		p, err := handshake(ctx, c, a)
		if err == nil {
			err = settle() // in plain text the peer is identified only now
		}
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if len(peers) == n {
			p.Fail(errFull)
			return nil
		}
		if err := duplicate(peers, p); err != nil {
			return err
		}
		if peers = append(peers, p); len(peers) == n {
			cancel(errFull)
		}
		return nil
	}
	failure := d.open(inner, ln, func(ctx context.Context, c net.Conn, settle func() error) error {
		s, err := a.Identity.server(ctx, c, Exchange, settle)
		if err != nil {
			return err
		}
		return enter(ctx, a.Identity.acceptedConn(s, ln), settle)
	}, func(ctx context.Context, c *conn) error { return enter(ctx, c, func() error { return nil }) })
	if len(peers) == n {
		return peers, nil
	}
	if ctx.Err() != nil {
		failure = context.Cause(ctx)
	}
	err := fmt.Errorf("%d of %d members have connected to %s: %w%s%s", len(peers), n, ln.Addr(), failure, describe(peers), d.refused.describe())
	for _, p := range peers {
		p.Fail(err)
	}
	return nil, err
}

// errFull is for a member that connects after the last one.
var errFull = errors.New("the group has all its members already")

func describe(peers []*Peer) string {
	var b strings.Builder
	for i, p := range peers {
		b.WriteString([]string{"; connected: ", ", "}[min(i, 1)] + p.Info.IP.String())
	}
	return b.String()
}

// duplicate refuses a second queue pair of one IP: feedback names its sender by
// IP alone.
func duplicate(peers []*Peer, p *Peer) error {
	for _, o := range peers {
		if o.Info.IP == p.Info.IP {
			err := fmt.Errorf("%s: %s is a member already", p, o)
			p.Fail(err)
			return err
		}
	}
	return nil
}

// Describe sends the member the group that it must connect to.
func (p *Peer) Describe(ctx context.Context, g Group) error {
	if err := g.Check(); err != nil {
		return err
	}
	return p.c.send(ctx, message{Type: typeGroup, Group: &g})
}

// AwaitReady waits until the member has connected its queue pair.
func (p *Peer) AwaitReady(ctx context.Context) error {
	_, err := p.c.receive(ctx, typeReady)
	return err
}

// Registered tells the member that data may flow.
func (p *Peer) Registered(ctx context.Context) error {
	err := p.c.send(ctx, message{Type: typeRegistered})
	p.c.clean = err == nil
	return err
}

// Fail sends the member the reason why the join fails, and closes the connection.
func (p *Peer) Fail(err error) { p.c.refuse(err) }

// Close ends the exchange. After Registered the connection to a member that has connected to
// this side stays for the next group (Identity.Close), otherwise it is closed.
func (p *Peer) Close() error { return p.c.end() }
