// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// Peer is a member as the master sees it.
type Peer struct {
	Info ConnInfo
	c    *conn
}

// String names the peer by its queue pair and its connection.
func (p *Peer) String() string {
	return fmt.Sprintf("%s QP 0x%x (%s)", p.Info.IP, uint32(p.Info.QPN), p.c.peer)
}

// helloTimeout is how long a connection may take to say who it is. Members that
// have to prepare do so before they connect.
const helloTimeout = 5 * time.Second

// maxGreeting bounds the connections that have not said who they are.
const maxGreeting = 64

// Greet waits for the member behind a connection to say who it is. It takes
// over c, also on error. check may be nil.
func Greet(ctx context.Context, c net.Conn, check func(*ConnInfo) error) (*Peer, error) {
	p := &Peer{c: newConn(c, "member")}
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	m, err := p.c.receive(ctx, typeHello)
	if err == nil {
		p.Info = *m.Member
		if check != nil {
			if e := check(m.Member); e != nil {
				err = fmt.Errorf("%s: %w", p, e)
			}
		}
	}
	if err != nil {
		p.c.refuse(err)
		return nil, err
	}
	return p, nil
}

// Collect accepts connections until n members have said who they are, each of
// another IP. A connection that does not keep to the exchange is told why and
// closed, and takes nobody's place; if ctx ends first the error repeats what
// was wrong with such ones. Collect stops accepting before it returns, so that
// ln, which stays open, may be used again.
func Collect(ctx context.Context, ln net.Listener, n int, check func(*ConnInfo) error) ([]*Peer, error) {
	type greeting struct {
		p   *Peer
		err error
	}
	inner, cancel := context.WithCancel(ctx)
	greetings := make(chan greeting)
	finished := make(chan error, 1)
	go func() {
		finished <- accept(inner, ln, func(p *Peer, err error) { greetings <- greeting{p, err} }, check)
	}()

	var peers []*Peer
	var refused []string
	var failure error
	for len(peers) < n && failure == nil {
		select {
		case g := <-greetings:
			if g.err == nil {
				g.err = duplicate(peers, g.p)
			}
			if g.err != nil {
				if len(refused) < 8 {
					refused = append(refused, g.err.Error())
				}
				continue
			}
			peers = append(peers, g.p)
		case failure = <-finished:
			finished <- failure
		case <-ctx.Done():
			failure = context.Cause(ctx)
		}
	}
	cancel()
	for done := false; !done; { // late ones are not needed any more
		select {
		case g := <-greetings:
			if g.p != nil {
				g.p.Fail(errors.New("the group has all its members already"))
			}
		case <-finished:
			done = true
		}
	}
	if failure == nil {
		return peers, nil
	}
	err := fmt.Errorf("%d of %d members have connected to %s: %w%s", len(peers), n, ln.Addr(), failure, describe(peers, refused))
	for _, p := range peers {
		p.Fail(err)
	}
	return nil, err
}

func describe(peers []*Peer, refused []string) string {
	var b strings.Builder
	for i, p := range peers {
		b.WriteString([]string{"; connected: ", ", "}[min(i, 1)] + p.Info.IP.String())
	}
	for i, r := range refused {
		b.WriteString([]string{"; refused: ", ", "}[min(i, 1)] + r)
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

// accept greets all who connect, several at once so that a silent one holds
// nobody up, until ctx ends. It returns after the last report.
func accept(ctx context.Context, ln net.Listener, report func(*Peer, error), check func(*ConnInfo) error) error {
	release := interruptAccept(ctx, ln)
	slots := make(chan struct{}, maxGreeting)
	defer func() {
		for range maxGreeting { // all greetings have ended
			slots <- struct{}{}
		}
		release()
	}()
	for {
		c, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("accept: %w", err)
		}
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			report(Greet(ctx, c, check))
		}()
	}
}

// Describe tells the member what to connect to.
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
	return p.c.send(ctx, message{Type: typeRegistered})
}

// Fail tells the member why the group does not come about, and closes the
// connection.
func (p *Peer) Fail(err error) { p.c.refuse(err) }

// Close closes the connection.
func (p *Peer) Close() error { return p.c.c.Close() }
