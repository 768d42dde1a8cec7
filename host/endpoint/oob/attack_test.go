// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// wire is a man in the middle: connections to it go on to a server. It keeps
// what it carries, and may change it.
type wire struct {
	net.Listener
	mu       sync.Mutex
	up, down bytes.Buffer // bytes to and from the server, of all connections
	// change alters the bytes of the first connection in place; at is the number
	// of bytes before them in that direction.
	change func(up bool, at int, b []byte)
	n      int
	wg     sync.WaitGroup
}

func newWire(t *testing.T, to string) *wire {
	w := &wire{Listener: listen(t)}
	go func() {
		for {
			c, err := w.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", to)
			if err != nil {
				c.Close()
				continue
			}
			w.mu.Lock()
			w.n++
			first := w.n == 1
			w.mu.Unlock()
			w.wg.Go(func() { w.carry(c, s, &w.down, false, first) })
			w.wg.Go(func() { w.carry(s, c, &w.up, true, first) })
		}
	}()
	return w
}

func (w *wire) carry(to, from net.Conn, keep *bytes.Buffer, up, first bool) {
	b := make([]byte, 4096)
	for at := 0; ; {
		n, err := from.Read(b)
		w.mu.Lock()
		keep.Write(b[:n])
		if w.change != nil && first {
			w.change(up, at, b[:n])
		}
		w.mu.Unlock()
		at += n
		if _, e := to.Write(b[:n]); e != nil || err != nil {
			to.Close()
			from.Close()
			return
		}
	}
}

func (w *wire) carried() (up, down []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.up.Bytes()), bytes.Clone(w.down.Bytes())
}

// group1 makes a group of one member at ln, and returns what the master has of it.
func group1(ctx context.Context, id *Identity, ln net.Listener) (ConnInfo, error) {
	peers, err := Collect(ctx, ln, 1, anywhere(id))
	if err != nil {
		return ConnInfo{}, err
	}
	p := peers[0]
	defer p.Close()
	return p.Info, errors.Join(p.Describe(ctx, group), p.AwaitReady(ctx), p.Registered(ctx))
}

// member1 is the member of such a group.
func member1(ctx context.Context, id *Identity, at string) (Group, error) {
	c, err := id.Dial(ctx, at, Exchange)
	if err != nil {
		return Group{}, err
	}
	m := NewMember(c)
	defer m.Close()
	g, err := m.Offer(ctx, info(1))
	if err != nil {
		return g, err
	}
	return g, m.Ready(ctx)
}

// whole runs a whole exchange through w.
func (w *wire) whole(t *testing.T, ctx context.Context, ln net.Listener) {
	t.Helper()
	done := make(chan error, 1)
	go func() { _, err := member1(ctx, keyed('k'), w.Addr().String()); done <- err }()
	_, err := group1(ctx, keyed('k'), ln)
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
}

// TestWiretap looks for what is worth knowing on the wire: numbers of queue pairs,
// R_Keys, the words of messages.
func TestWiretap(t *testing.T) {
	ln := listen(t)
	w := newWire(t, ln.Addr().String())
	w.whole(t, within(t, 10*time.Second), ln)
	up, down := w.carried()
	if len(up) < 500 || len(down) < 500 {
		t.Fatalf("the wire carried %d and %d bytes", len(up), len(down))
	}
	for _, word := range []string{"qpn", "rkey", "window", "hello", "registered", "3735928559", "10.0.9.9"} {
		if bytes.Contains(up, []byte(word)) || bytes.Contains(down, []byte(word)) {
			t.Errorf("%q is on the wire", word)
		}
	}
}

// TestReplay plays a member's whole part again: the master does not take it, and
// sends what was not on the wire before, but no message.
func TestReplay(t *testing.T) {
	ln := listen(t)
	w := newWire(t, ln.Addr().String())
	w.whole(t, within(t, 10*time.Second), ln)
	up, down := w.carried()

	id := keyed('k')
	heard := make(chan []byte, 1)
	go func() {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Error(err)
			heard <- nil
			return
		}
		defer c.Close()
		_, _ = c.Write(up) // it may be refused half-way
		b, _ := io.ReadAll(c)
		heard <- b
	}()
	_, err := group1(within(t, 500*time.Millisecond), id, ln)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "0 of 1 members") || !strings.Contains(err.Error(), "refused: 127.0.0.1:") {
		t.Errorf("the replay ended with %v", err)
	}
	if b := <-heard; len(b) == 0 || len(b) >= len(down) || id.Refused() == 0 {
		t.Errorf("the replay got %d bytes, the member had got %d; %d connections were refused", len(b), len(down), id.Refused())
	}
}

// TestManInTheMiddle has a byte changed, in turn everywhere in an exchange, in
// either direction: nobody takes what the other has not said, and the join that
// goes on takes the member by its next connection.
func TestManInTheMiddle(t *testing.T) {
	ln := listen(t)
	first := newWire(t, ln.Addr().String())
	first.whole(t, within(t, 10*time.Second), ln)
	up, down := first.carried()
	step := 97
	if testing.Short() {
		step = 397
	}
	failed := 0
	for i := 0; i < len(up)+len(down); i += step {
		at, upward := i, true
		if i >= len(up) {
			at, upward = i-len(up), false
		}
		w := newWire(t, ln.Addr().String())
		changed := false
		w.change = func(up bool, before int, b []byte) {
			if j := at - before; up == upward && j >= 0 && j < len(b) {
				b[j] ^= 0x20
				changed = true
			}
		}
		ctx := within(t, 5*time.Second)
		type outcome struct {
			g   Group
			err error
		}
		member := make(chan outcome, 1)
		go func() {
			attempt, stop := context.WithTimeout(ctx, 700*time.Millisecond)
			g, err := member1(attempt, keyed('k'), w.Addr().String())
			stop()
			if err != nil { // the application tries again
				failed++
				g, err = member1(ctx, keyed('k'), ln.Addr().String())
			}
			member <- outcome{g, err}
		}()
		var got ConnInfo
		var m outcome
		waiting, enough := context.WithCancel(ctx)
		go func() { m = <-member; enough() }()
		for waiting.Err() == nil { // the master tries again too
			if c, err := group1(waiting, keyed('k'), ln); err == nil {
				got = c
			}
		}
		if m.err != nil || got.Window == nil {
			t.Errorf("byte %d, up %v: %v", at, upward, m.err)
			continue
		}
		if fmt.Sprintf("%+v", m.g) != fmt.Sprintf("%+v", group) || got.QPN != info(1).QPN || *got.Window != *info(1).Window {
			t.Errorf("byte %d, up %v: taken: %+v, %+v", at, upward, m.g, got)
		}
		w.mu.Lock()
		if !changed {
			t.Logf("byte %d, up %v was not reached", at, upward)
		}
		w.mu.Unlock()
		w.Close()
	}
	t.Logf("%d of the changed connections failed and were made anew", failed)
}

// TestWithoutTheKey has clients with a certificate that they have seen, but not its
// private key, with one of their own, and with none.
func TestWithoutTheKey(t *testing.T) {
	id := keyed('k')
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	copied := *id.certs[1]
	copied.PrivateKey = private
	for name, cert := range map[string]*tls.Certificate{"copied": &copied, "own": keyed('x').certs[1], "none": nil} {
		t.Run(name, func(t *testing.T) {
			ln := listen(t)
			heard := make(chan error, 1)
			go func() {
				c, err := net.Dial("tcp", ln.Addr().String())
				if err != nil {
					heard <- err
					return
				}
				defer c.Close()
				cfg := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{Exchange}, ServerName: serverName(1)}
				if cert != nil {
					cfg.Certificates = []tls.Certificate{*cert}
				}
				s := tls.Client(c, cfg)
				b := make([]byte, 1)
				if _, err := io.WriteString(s, hello); err == nil {
					if n, _ := s.Read(b); n > 0 {
						heard <- fmt.Errorf("it was admitted: %q", b)
						return
					}
				}
				heard <- nil
			}()
			_, err := group1(within(t, 500*time.Millisecond), id, ln)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "refused: 127.0.0.1:") {
				t.Errorf("the join ended with %v", err)
			}
			if err := <-heard; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestClaimedAddress has a member that has the key claim another host's address.
func TestClaimedAddress(t *testing.T) {
	ln := listen(t)
	ctx := within(t, 10*time.Second)
	id := keyed('k')
	go func() { _, _ = Collect(ctx, ln, 1, Admission{Identity: id}) }()
	_, err := member1(ctx, id, ln.Addr().String())
	if err == nil || !strings.Contains(err.Error(), "it claims 10.0.0.1 and is connected from 127.0.0.1: a member speaks for its own address only") {
		t.Errorf("the member was told %v", err)
	}
}

// TestManyConnections has one address open many more connections than there are
// places, which say nothing, and again and again: a member from another address
// comes in at once, and the places stay bounded.
func TestManyConnections(t *testing.T) {
	ln := listen(t)
	ctx := within(t, 20*time.Second)
	id := keyed('k')
	var lines []string
	var mu sync.Mutex
	id.Log = func(text string) { mu.Lock(); lines = append(lines, text); mu.Unlock() }
	flooding, stop := context.WithCancel(ctx)
	var flood sync.WaitGroup
	ready := make(chan struct{})
	flood.Go(func() {
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
		var open []net.Conn
		for i := 0; flooding.Err() == nil; i++ {
			c, err := from.DialContext(flooding, "tcp", ln.Addr().String())
			if err != nil {
				continue
			}
			if open = append(open, c); len(open) > 512 {
				open[0].Close()
				open = open[1:]
			}
			if i == 2*maxAttempts {
				close(ready)
			}
		}
		for _, c := range open {
			c.Close()
		}
	})
	joined := make(chan error, 1)
	go func() { _, err := group1(ctx, id, ln); joined <- err }()
	<-ready
	for id.Refused() < maxAttempts && ctx.Err() == nil { // the listener is behind the flood
		time.Sleep(time.Millisecond)
	}
	start := time.Now()
	_, err := member1(ctx, keyed('k'), ln.Addr().String())
	took := time.Since(start)
	stop()
	flood.Wait()
	if err := errors.Join(err, <-joined); err != nil || took > 10*time.Second { // a busy machine takes two
		t.Errorf("the member was in after %v: %v", took, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if n := id.Refused(); n < maxAttempts || len(lines) == 0 || len(lines) > 2+int(time.Since(start).Seconds()) {
		t.Errorf("%d connections were refused, and said in %d lines", n, len(lines))
	}
}

// TestFailingAddress bounds the handshakes that one address gets by failing.
func TestFailingAddress(t *testing.T) {
	r := newRefusals(keyed('k'))
	now := time.Unix(1000, 0)
	for i := range failuresRate {
		if r.tooMany(info(1).IP, now) {
			t.Fatalf("refused after %d failures", i)
		}
		r.add(info(1).IP, now, errors.New("x"))
	}
	if !r.tooMany(info(1).IP, now) || r.tooMany(info(2).IP, now) || r.tooMany(info(1).IP, now.Add(time.Second)) {
		t.Error("not the failing address alone, for a second, is refused")
	}
	for i := range 3 * maxRefusers {
		r.add(info(i).IP, now, errors.New("y"))
	}
	if len(r.byAddress) != maxRefusers {
		t.Errorf("%d addresses are remembered", len(r.byAddress))
	}
}

// A connection that is refused while another one's line is being logged waits
// with its own.
func TestLogIsCalledOnceAtATime(t *testing.T) {
	id := keyed('k')
	entered := make(chan struct{}, 2)
	var inside, lines atomic.Int32
	id.Log = func(string) {
		if inside.Add(1) > 1 {
			t.Error("two calls of Log at the same time")
		}
		lines.Add(1)
		entered <- struct{}{}
		time.Sleep(50 * time.Millisecond)
		inside.Add(-1)
	}
	r := newRefusals(id)
	now := time.Unix(1000, 0)
	var both sync.WaitGroup
	both.Go(func() { r.add(info(1).IP, now, io.EOF) })
	<-entered
	both.Go(func() { r.add(info(2).IP, now.Add(time.Minute), io.EOF) })
	both.Wait()
	if lines.Load() != 2 {
		t.Errorf("%d lines", lines.Load())
	}
}
