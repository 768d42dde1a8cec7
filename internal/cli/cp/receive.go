// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/gleam-rdma/gleam/internal/cli/port"
)

// ReceiveOptions configure a receiver.
type ReceiveOptions struct {
	Local
	Dir     string       // files come below it
	Address string       // host:port to listen at; an empty host is any address
	Say     func(string) // gets what happens, for people

	onChunk func() // tests only: called before each chunk is written
}

// Receive serves one sender after the other until ctx ends. Sockets are opened in the
// network namespace of the calling thread.
func Receive(ctx context.Context, o *ReceiveOptions) error {
	o.Host.Log = o.Say
	if err := o.Local.check(); err != nil {
		return err
	}
	root, err := os.OpenRoot(o.Dir)
	if err != nil {
		return fmt.Errorf("--receive %s: %w", o.Dir, err)
	}
	defer root.Close()
	id, err := o.Local.identity()
	if err != nil {
		return err
	}
	ln, err := port.Listen(o.Address, "gleam cp --receive")
	if err != nil {
		return fmt.Errorf("listen for senders: %w", err)
	}
	defer ln.Close()
	o.Say(fmt.Sprintf("waiting for senders at %s, files go to %s", ln.Addr(), o.Dir))
	for {
		c, err := id.Accept(ctx, ln, use)
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("wait for senders at %s: %w", ln.Addr(), err)
		}
		s := &session{o: o, ln: ln, w: newWire(c)}
		if err := s.serve(ctx, root); err != nil {
			if ctx.Err() != nil {
				err = errors.New("the receiver is being stopped")
			}
			var theirs remoteError
			if !errors.As(err, &theirs) {
				s.w.fail(err)
				s.w.drain()
			}
			o.Say(fmt.Sprintf("from %s: %v", c.RemoteAddr(), err))
		}
		s.w.close()
	}
}

// session is one transfer at a receiver.
type session struct {
	o      *ReceiveOptions
	ln     net.Listener
	w      *wire
	hello  hello
	m      *manifest
	store  *store
	seal   *seal
	member *member // the member of a group; nil: none
	told   time.Time
}

// serve serves a sender until all files are whole.
func (s *session) serve(ctx context.Context, root *os.Root) (err error) {
	defer context.AfterFunc(ctx, func() { _ = s.w.c.SetReadDeadline(time.Now()) })()
	start := time.Now()
	if err := s.describe(); err != nil {
		return err
	}
	s.store = newStore(root, s.m)
	s.seal = newSeal(s.hello.Key)
	defer func() {
		s.store.close()
		if e := s.store.settle(); err == nil {
			err = e
		} else if e != nil {
			s.o.Say(fmt.Sprintf("from %s: permissions of directories: %v", s.w.c.RemoteAddr(), e))
		}
	}()
	if err := s.compare(); err != nil {
		return err
	}
	had := s.store.bytes
	defer func() { s.leave() }()
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		kind, data, err := s.w.receive()
		if err != nil {
			return err
		}
		switch kind {
		case frameJoin:
			err = s.join(ctx, data)
		case frameLeave:
			if err = s.leave(); err == nil {
				err = s.w.send(frameMissing, s.store.missing)
			}
		case frameChunk:
			err = s.chunk(data)
		case frameFinish:
			switch {
			case s.member != nil:
				err = unexpected(kind)
			case s.store.left > 0:
				err = s.w.send(frameMissing, s.store.missing)
			default:
				if err = s.store.finish(); err != nil {
					break
				}
				s.o.Say(fmt.Sprintf("from %s: %d files and directories, %d bytes, %d of them were here, in %v", s.w.c.RemoteAddr(), len(s.m.entries), s.m.bytes, had, time.Since(start).Round(time.Millisecond)))
				return s.w.send(frameWhole, nil)
			}
		default:
			err = unexpected(kind)
		}
		if err != nil {
			return err
		}
	}
}

// describe receives what is to come.
func (s *session) describe() error {
	data, err := s.w.expect(frameHello)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &s.hello); err != nil {
		return errors.New("a hello that is not JSON")
	}
	if err := s.hello.check(); err != nil {
		return err
	}
	s.m = newManifest(s.hello.Chunk)
	for {
		kind, data, err := s.w.receive()
		switch {
		case err != nil:
			return err
		case kind == frameListed:
			return nil
		case kind != frameEntries:
			return unexpected(kind)
		}
		if err := s.m.addBatch(data); err != nil {
			return err
		}
	}
}

// compare finds out, with the sender, what is here already.
func (s *session) compare() error {
	if err := s.store.begin(); err != nil {
		return err
	}
	err := s.store.hashes(func(first int, sums []byte) error {
		return s.w.send(frameHave, appendHave(first, sums))
	})
	if err != nil {
		return err
	}
	if err := s.w.send(frameHad, nil); err != nil {
		return err
	}
	data, err := s.w.expect(frameRight)
	if err != nil {
		return err
	}
	right, err := parseBitmap(data, s.m.chunks)
	if err != nil {
		return err
	}
	if err := s.store.resume(right); err != nil {
		return err
	}
	return s.w.send(frameMissing, s.store.missing)
}

// put writes a chunk that has arrived. A chunk with a wrong HMAC stays missing.
func (s *session) put(msg []byte) error {
	n, data, err := s.seal.open(s.m, msg)
	if errors.Is(err, errForged) {
		s.o.Say(fmt.Sprintf("from %s: %v: it is dropped", s.w.c.RemoteAddr(), err))
		return nil
	}
	if err != nil {
		return err
	}
	if s.o.onChunk != nil {
		s.o.onChunk()
	}
	return s.store.put(n, data)
}

// chunk takes a chunk that came over the connection.
func (s *session) chunk(msg []byte) error {
	if s.member != nil {
		return unexpected(frameChunk)
	}
	if err := s.put(msg); err != nil {
		return err
	}
	if time.Since(s.told) < 100*time.Millisecond {
		return nil
	}
	s.told = time.Now()
	return s.w.send(frameDone, done{bytes: s.store.bytes}.encode())
}
