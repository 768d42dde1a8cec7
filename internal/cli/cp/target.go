// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint/oob"
	"github.com/gleam-rdma/gleam/internal/cli/port"
)

// Status is how far a receiver is.
type Status struct {
	Host  string `json:"host"`
	Bytes int64  `json:"bytes"` // verified there
	Total int64  `json:"total"`
	By    string `json:"by"`              // "group", "tcp" or ""
	Whole bool   `json:"whole"`           // all files have their names
	Error string `json:"error,omitempty"` // why it gets no more
}

// target is a receiver, as the sender sees it.
type target struct {
	host string
	ip   netip.Addr // the IP of its end of the connection
	s    *sender
	w    *wire
	in   chan frame    // all but frameDone; closed with err
	gone chan struct{} // closed by reader, behind in

	missing bitmap

	mu      sync.Mutex
	done    done
	by      string
	whole   bool
	err     error // the error of the connection, or of the transfer
	changed func()
}

// frame is a frame with bytes of its own.
type frame struct {
	kind byte
	data []byte
}

// dial connects to the receiver.
func (t *target) dial(ctx context.Context, id *oob.Identity) error {
	ctx, cancel := context.WithTimeoutCause(ctx, t.s.o.Timeout, fmt.Errorf("no answer within %v", t.s.o.Timeout))
	defer cancel()
	c, err := id.Dial(ctx, withPort(t.host), use)
	if err != nil {
		err = port.DialError(err)
		if ctx.Err() != nil {
			err = fmt.Errorf("%w (`gleam cp --receive DIR`; it serves one sender after the other)", err)
		}
		return fmt.Errorf("connect: %w", err)
	}
	at, _ := netip.ParseAddrPort(c.RemoteAddr().String()) // the net package's own text
	t.ip = at.Addr().Unmap().WithZone("")
	t.mu.Lock()
	t.err, t.done = nil, done{}
	t.mu.Unlock()
	t.w, t.in, t.gone = newWire(c), make(chan frame, 4), make(chan struct{})
	go t.read(t.w, t.in, t.gone)
	return nil
}

// read takes the receiver's frames until the connection ends.
func (t *target) read(w *wire, in chan frame, gone chan struct{}) {
	defer close(gone)
	defer close(in)
	for {
		kind, data, err := w.receive()
		if err == nil && kind == frameDone {
			var d done
			if d, err = parseDone(data); err == nil {
				t.report(d)
				continue
			}
		}
		if err != nil {
			t.fail(err)
			return
		}
		if kind == frameWhole { // the end of the connection that follows is no failure
			t.mu.Lock()
			t.whole = true
			t.mu.Unlock()
		}
		select {
		case in <- frame{kind, bytes.Clone(data)}:
		case <-w.end:
			return
		}
	}
}

func (t *target) report(d done) {
	t.mu.Lock()
	t.done = done{max(t.done.messages, d.messages), min(d.bytes, t.s.source.m.bytes)}
	f := t.changed
	t.mu.Unlock()
	if f != nil {
		f()
	}
}

// lost notes the receiver's first error.
func (t *target) lost(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil && !t.whole {
		t.err = err
	}
}

// fail ends the receiver's connection with its first error.
func (t *target) fail(err error) {
	t.lost(err)
	t.mu.Lock()
	f := t.changed
	t.mu.Unlock()
	t.w.close()
	if f != nil {
		f()
	}
}

// failed is the receiver's error, or nil.
func (t *target) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// watch has f called when the receiver reports or fails; nil ends that.
func (t *target) watch(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed = f
}

func (t *target) way(by string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.by = by
}

func (t *target) status() Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := Status{Host: t.host, Bytes: t.done.bytes, Total: t.s.source.m.bytes, By: t.by, Whole: t.whole}
	if t.whole {
		x.Bytes = x.Total
	}
	if t.err != nil {
		x.Error = t.err.Error()
	}
	return x
}

// expect waits for a frame of one of the kinds.
func (t *target) expect(ctx context.Context, kinds ...byte) (frame, error) {
	select {
	case f, ok := <-t.in:
		if !ok {
			if err := t.failed(); err != nil {
				return f, err
			}
			return f, errors.New("the connection is closed")
		}
		if !bytes.Contains(kinds, []byte{f.kind}) {
			return f, unexpected(f.kind)
		}
		return f, nil
	case <-ctx.Done():
		return frame{}, context.Cause(ctx)
	}
}

// awaitMissing waits for what the receiver misses, or its word that all is whole.
func (t *target) awaitMissing(ctx context.Context, kinds ...byte) error {
	f, err := t.expect(ctx, append(kinds, frameMissing)...)
	if err != nil {
		return err
	}
	if f.kind == frameWhole {
		return nil
	}
	m := t.s.source.m
	if t.missing, err = parseBitmap(f.data, m.chunks); err != nil {
		return err
	}
	d := done{bytes: m.bytes}
	for i := range m.chunks {
		if t.missing.has(i) {
			_, _, n := m.place(i)
			d.bytes -= int64(n)
		}
	}
	t.report(d)
	return nil
}

// begin describes the transfer, and finds out what the receiver has.
func (t *target) begin(ctx context.Context) error {
	src := t.s.source
	if err := t.w.sendHello(&t.s.hello); err != nil {
		return err
	}
	for i := 0; i < len(src.m.entries); {
		var text []byte
		text, i = src.m.batch(i)
		if err := t.w.send(frameEntries, text); err != nil {
			return err
		}
	}
	if err := t.w.send(frameListed, nil); err != nil {
		return err
	}
	right := newBitmap(src.m.chunks)
	for {
		f, err := t.expect(ctx, frameHave, frameHad)
		if err != nil {
			return err
		}
		if f.kind == frameHad {
			break
		}
		first, sums, err := parseHave(f.data, src.m.chunks)
		if err != nil {
			return err
		}
		for i, theirs := range sums {
			own, err := src.sum(first + i)
			if err != nil {
				return err
			}
			if bytes.Equal(own[:], theirs) {
				right.set(first + i)
			}
		}
	}
	if err := t.w.send(frameRight, right); err != nil {
		return err
	}
	return t.awaitMissing(ctx)
}

// rounds bounds how often a receiver is sent chunks that did not arrive right.
const rounds = 3

// unicast sends what the receiver misses over the connection, until all is whole.
func (t *target) unicast(ctx context.Context) error {
	src := t.s.source
	r := reader{source: src}
	defer r.close()
	s := newSeal(t.s.hello.Key)
	msg := make([]byte, chunkHead+src.m.chunk)
	for range rounds {
		for _, i := range t.missing.members(src.m.chunks) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			t.way("tcp")
			n, err := r.read(i, msg[chunkHead:])
			if err != nil {
				return err
			}
			s.close(msg[:chunkHead+n], i)
			if err := t.w.send(frameChunk, msg[:chunkHead+n]); err != nil {
				if e := t.reason(); e != nil {
					return e
				}
				return err
			}
			t.s.sentTCP.Add(int64(n))
		}
		if err := t.w.send(frameFinish, nil); err != nil {
			return err
		}
		if err := t.awaitMissing(ctx, frameWhole); err != nil || t.whole {
			return err
		}
	}
	return fmt.Errorf("chunks arrive with a wrong HMAC, %d times over: look for a fault of memory or network", rounds)
}

// reason is what the receiver said before the connection ended.
func (t *target) reason() error {
	wait := time.NewTimer(time.Second)
	defer wait.Stop()
	select {
	case <-t.gone:
	case <-wait.C:
	}
	return t.failed()
}
