// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// counted counts the connections that a listener accepts: each has its own handshake.
type counted struct {
	*net.TCPListener
	n atomic.Int32
}

func (l *counted) Accept() (net.Conn, error) {
	c, err := l.TCPListener.Accept()
	if err == nil {
		l.n.Add(1)
	}
	return c, err
}

// pair is a master and a member that make groups.
type pair struct {
	t              *testing.T
	ln             *counted
	master, member *Identity
	at             string // the address at which the member finds the master
}

func newPair(t *testing.T) *pair {
	p := &pair{t: t, ln: &counted{TCPListener: listen(t).(*net.TCPListener)}, master: keyed('k'), member: keyed('k')}
	p.at = p.ln.Addr().String()
	t.Cleanup(func() { p.master.Close(); p.member.Close() })
	return p
}

// join is a member's whole part; end is what it does at last.
func (p *pair) join(ctx context.Context, id *Identity, i int, end func(*Member) error) error {
	m, err := DialMaster(ctx, id, p.at)
	if err != nil {
		return err
	}
	if _, err := m.Offer(ctx, info(i)); err != nil {
		_ = m.Close()
		return err
	}
	return errors.Join(m.Ready(ctx), end(m))
}

// finish is a master's part after the hellos.
func finish(ctx context.Context, peers []*Peer, err error, end func(*Peer) error) error {
	for _, p := range peers {
		err = errors.Join(err, p.Describe(ctx, group), p.AwaitReady(ctx), p.Registered(ctx), end(p))
	}
	return err
}

// group makes a group of one member.
func (p *pair) group(masterEnd func(*Peer) error, memberEnd func(*Member) error) error {
	ctx := within(p.t, 10*time.Second)
	done := make(chan error, 1)
	go func() { done <- p.join(ctx, p.member, 1, memberEnd) }()
	peers, err := Collect(ctx, p.ln, 1, anywhere(p.master))
	err = finish(ctx, peers, err, masterEnd)
	return errors.Join(err, <-done)
}

// groups makes n groups, and returns the number of connections that they took.
func (p *pair) groups(n int) int {
	p.t.Helper()
	before := p.ln.n.Load()
	for range n {
		if err := p.group((*Peer).Close, (*Member).Close); err != nil {
			p.t.Fatal(err)
		}
	}
	return int(p.ln.n.Load() - before)
}

// idle waits until id keeps n connections.
func (p *pair) idle(id *Identity, n int) {
	p.t.Helper()
	for ctx := within(p.t, 5*time.Second); ctx.Err() == nil; time.Sleep(time.Millisecond) {
		if id.kept.size() == n {
			return
		}
	}
	p.t.Fatalf("%d connections are kept, not %d", id.kept.size(), n)
}

func (k *kept) size() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.list)
}

// held returns the connection that id keeps.
func (p *pair) held(id *Identity) net.Conn {
	p.idle(id, 1)
	return id.kept.list[0].c.(interface{ NetConn() net.Conn }).NetConn()
}

func TestConnectionServesFurtherGroups(t *testing.T) {
	p := newPair(t)
	if n := p.groups(5); n != 1 {
		t.Errorf("5 groups took %d connections", n)
	}
	// A member that joins a group under way (AcceptMember) has the same connection.
	ctx := within(t, 10*time.Second)
	done := make(chan error, 1)
	go func() { done <- p.join(ctx, p.member, 1, (*Member).Close) }()
	peer, err := AcceptMember(ctx, p.ln, anywhere(p.master))
	if err := errors.Join(finish(ctx, []*Peer{peer}, err, (*Peer).Close), <-done); err != nil || p.ln.n.Load() != 1 {
		t.Errorf("%d connections, %v", p.ln.n.Load(), err)
	}
}

// Several members have their hellos on their way before the master collects.
func TestHelloComesBeforeCollect(t *testing.T) {
	p := newPair(t)
	ctx := within(t, 20*time.Second)
	ids := []*Identity{keyed('k'), keyed('k'), keyed('k')}
	done := make(chan error, len(ids))
	for round := range 3 {
		for i, id := range ids {
			go func() { done <- p.join(ctx, id, i, (*Member).Close) }()
		}
		for p.master.kept.readyOnes() < len(ids) && round > 0 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		peers, err := Collect(ctx, p.ln, len(ids), anywhere(p.master))
		err = finish(ctx, peers, err, (*Peer).Close)
		for range ids {
			err = errors.Join(err, <-done)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := p.ln.n.Load(); int(n) != len(ids) {
		t.Errorf("%d connections for %d members", n, len(ids))
	}
	for _, id := range ids {
		id.Close()
	}
	p.idle(p.master, 0)
}

func (k *kept) readyOnes() (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.list {
		if c.ready {
			n++
		}
	}
	return n
}

// A release that closes its connections, at either side, is served as before.
func TestPeerThatClosesItsConnections(t *testing.T) {
	cut := func(c *conn) error { return c.c.Close() }
	for name, one := range map[string]func(p *pair) error{
		"master": func(p *pair) error {
			return p.group(func(x *Peer) error { return cut(x.c) }, (*Member).Close)
		},
		"member": func(p *pair) error {
			return p.group((*Peer).Close, func(x *Member) error { return cut(x.c) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			for range 4 {
				if err := one(p); err != nil {
					t.Fatal(err)
				}
			}
			if n := p.ln.n.Load(); n != 4 {
				t.Errorf("4 groups took %d connections", n)
			}
			p.idle(p.master, 0)
		})
	}
}

// The master resets the connection when the second hello has begun: the member's join goes on
// over a new one.
func TestResetWithinTheSecondHello(t *testing.T) {
	for _, before := range []bool{false, true} { // the member has connected
		p := newPair(t)
		p.groups(1)
		c := p.held(p.master).(*net.TCPConn)
		_ = c.SetLinger(0)
		ctx := within(t, 10*time.Second)
		if before {
			m, err := DialMaster(ctx, p.member, p.at)
			if err != nil || !m.c.again {
				t.Fatalf("the connection is not kept: %v", err)
			}
			_ = c.Close()
			done := make(chan error, 1)
			go func() { _, err := m.Offer(ctx, info(1)); done <- errors.Join(err, m.Ready(ctx), m.Close()) }()
			peers, err := Collect(ctx, p.ln, 1, anywhere(p.master))
			if err := errors.Join(finish(ctx, peers, err, (*Peer).Close), <-done); err != nil {
				t.Error(err)
			}
		} else {
			done := make(chan error, 1)
			go func() { done <- p.join(ctx, p.member, 1, (*Member).Close) }()
			for p.master.kept.readyOnes() == 0 && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			_ = c.Close()
			p.idle(p.master, 0) // nobody has collected it within helloWait
			peers, err := Collect(ctx, p.ln, 1, anywhere(p.master))
			if err := errors.Join(finish(ctx, peers, err, (*Peer).Close), <-done); err != nil {
				t.Error(err)
			}
		}
		if n := p.ln.n.Load(); n != 2 {
			t.Errorf("%d connections", n)
		}
	}
}

// A hello for which nobody collects is given back by the end of the connection: the member
// then waits at the listener, which may be another process's by now.
func TestHelloThatNobodyTakes(t *testing.T) {
	p := newPair(t)
	p.groups(1)
	ctx := within(t, 20*time.Second)
	done := make(chan error, 1)
	go func() { done <- p.join(ctx, p.member, 1, (*Member).Close) }()
	other := keyed('k')
	defer other.Close()
	peers, err := Collect(ctx, p.ln, 1, anywhere(other))
	if err := errors.Join(finish(ctx, peers, err, (*Peer).Close), <-done); err != nil {
		t.Error(err)
	}
}

// A connection after which something has failed is not kept.
func TestFailedExchangeIsNotKept(t *testing.T) {
	p := newPair(t)
	p.groups(1)
	ctx := within(t, 10*time.Second)
	done := make(chan error, 1)
	go func() { done <- p.join(ctx, p.member, 1, (*Member).Close) }()
	refuse := anywhere(p.master)
	refuse.Check = func(*ConnInfo) error { return errors.New("not in this group") }
	if _, err := AcceptMember(ctx, p.ln, refuse); err == nil || !strings.Contains(err.Error(), "not in this group") {
		t.Errorf("the second group has not looked at its member: %v", err)
	}
	var remote *RemoteError
	if err := <-done; !errors.As(err, &remote) || !strings.Contains(remote.Text, "not in this group") {
		t.Errorf("the member was told %v", err)
	}
	p.idle(p.master, 0)
	p.idle(p.member, 0)
	// The address of the connection counts in the next group, too.
	p.groups(1)
	go func() { done <- p.join(ctx, p.member, 1, (*Member).Close) }()
	_, err := AcceptMember(ctx, p.ln, Admission{Identity: p.master})
	if err == nil || !strings.Contains(err.Error(), "a member speaks for its own address only") || p.ln.n.Load() != 2 {
		t.Errorf("%d connections, %v", p.ln.n.Load(), err)
	}
	<-done
}

// Bytes that a man in the middle adds to a kept connection end it, at either side, and the
// next group is made over a new one.
func TestForeignBytesOnAKeptConnection(t *testing.T) {
	for name, b := range map[string]string{"garbage": "hello\n", "a record": "\x17\x03\x03\x00\x20" + strings.Repeat("x", 32)} {
		p := newPair(t)
		p.groups(1)
		_, _ = io.WriteString(p.held(p.member), b)
		p.idle(p.master, 0)
		if n := p.groups(1); n != 1 {
			t.Errorf("%s for the master: the next group took %d new connections", name, n)
		}
		_, _ = io.WriteString(p.held(p.master), b)
		if n := p.groups(1); n != 1 {
			t.Errorf("%s for the member: the next group took %d new connections", name, n)
		}
	}
}

func TestKeptConnectionsAreBounded(t *testing.T) {
	k := &keyed('k').kept
	defer k.close()
	var others []net.Conn
	for i := range maxKept + 10 {
		a, b := net.Pipe()
		others = append(others, b)
		_ = k.keep(&conn{c: a, via: fmt.Sprint(i)})
	}
	if n := k.size(); n != maxKept {
		t.Errorf("%d connections are kept", n)
	}
	if c, _ := k.take("9"); c != nil {
		t.Error("the tenth is kept")
	}
	if c, _ := k.take("10"); c == nil {
		t.Error("the oldest that may stay is not kept")
	}
	_ = others[0].SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := others[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the oldest one is not closed: %v", err)
	}
}

func TestIdleConnectionIsClosed(t *testing.T) {
	for _, side := range []bool{false, true} {
		p := newPair(t)
		if side {
			p.master.kept.idle = 20 * time.Millisecond
		} else {
			p.member.kept.idle = 20 * time.Millisecond
		}
		p.groups(1)
		p.idle(p.member, map[bool]int{false: 0, true: 1}[side])
		p.idle(p.master, 0)
		if n := p.groups(1); n != 1 {
			t.Errorf("the next group took %d connections", n)
		}
	}
}

// Close ends connections and goroutines, and nothing is kept after it.
func TestCloseEndsKeptConnections(t *testing.T) {
	before := runtime.NumGoroutine()
	p := newPair(t)
	p.groups(2)
	p.idle(p.master, 1)
	p.master.Close()
	if n := p.master.kept.size(); n != 0 {
		t.Errorf("%d connections are kept after Close", n)
	}
	if n := p.groups(2); n != 2 {
		t.Errorf("2 groups took %d connections of a closed Identity", n)
	}
	p.member.Close()
	for ctx := within(t, 5*time.Second); runtime.NumGoroutine() > before && ctx.Err() == nil; time.Sleep(time.Millisecond) {
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

// What has ended an exchange cannot use its connection any more.
func TestPeerIsSpentAfterClose(t *testing.T) {
	p := newPair(t)
	err := p.group(func(x *Peer) error {
		err := x.Close()
		x.Fail(errors.New("too late"))
		return errors.Join(err, x.Close())
	}, (*Member).Close)
	if err != nil {
		t.Fatal(err)
	}
	if n := p.groups(1); n != 0 {
		t.Errorf("the next group took %d connections", n)
	}
}
