// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"github.com/gleam-rdma/gleam/lab"
)

const streamPort = 18599

// streams are plain TCP streams from the first host to the others.
type streams struct {
	bytes int64
	hosts []lab.Host // the sender's first
	dirs  []string   // the folders of the receivers
}

// copy copies the file over one stream for each list of receivers, at the same time. A
// receiver passes on what comes to the next one of its list.
func (s *streams) copy(ctx context.Context, file string, chains [][]int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex
	var errs error
	run := func(f func() error) {
		all.Go(func() {
			if err := f(); err != nil {
				cancel()
				mu.Lock()
				errs = errors.Join(errs, err)
				mu.Unlock()
			}
		})
	}
	for _, chain := range chains {
		for i, r := range chain {
			ln, err := s.listen(r)
			if err != nil {
				cancel()
				all.Wait()
				return err
			}
			next := -1
			if i+1 < len(chain) {
				next = chain[i+1]
			}
			run(func() error { defer ln.Close(); return s.receive(ctx, ln, r, next) })
		}
	}
	for _, chain := range chains {
		run(func() error {
			f, err := os.Open(file)
			if err != nil {
				return err
			}
			defer f.Close()
			c, err := s.dial(ctx, 0, chain[0])
			if err != nil {
				return err
			}
			defer c.Close()
			defer context.AfterFunc(ctx, func() { _ = c.Close() })()
			if _, err := io.Copy(c, f); err != nil {
				return err
			}
			return awaitDone(c)
		})
	}
	all.Wait()
	return errs
}

func (s *streams) at(r int) string { return netip.AddrPortFrom(s.hosts[r].IPv4, streamPort).String() }

func (s *streams) listen(r int) (net.Listener, error) {
	return lab.In(s.hosts[r].NS, func() (net.Listener, error) { return net.Listen("tcp", s.at(r)) })
}

func (s *streams) dial(ctx context.Context, from, to int) (net.Conn, error) {
	return lab.In(s.hosts[from].NS, func() (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", s.at(to)) })
}

// awaitDone waits for the byte that says that the other side, and all behind it, have the
// file.
func awaitDone(c net.Conn) error {
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	return nil
}

// receive writes a stream to a file, and passes it on to the next host, if there is one.
func (s *streams) receive(ctx context.Context, ln net.Listener, r, next int) error {
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	c, err := ln.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	f, err := os.Create(filepath.Join(s.dirs[r-1], fileName))
	if err != nil {
		return err
	}
	defer f.Close()
	var to io.Writer = f
	var on net.Conn
	if next > 0 {
		if on, err = s.dial(ctx, r, next); err != nil {
			return err
		}
		defer on.Close()
		to = io.MultiWriter(on, f)
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{to}, io.LimitReader(c, s.bytes), make([]byte, 256<<10)); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if on != nil {
		if err := awaitDone(on); err != nil {
			return err
		}
	}
	_, err = c.Write([]byte{1})
	return err
}
