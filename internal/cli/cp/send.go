// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint/oob"
)

// Result is the outcome of a copy.
type Result struct {
	Files   int      `json:"files"` // files and directories
	Bytes   int64    `json:"bytes"` // bytes of all files
	Seconds float64  `json:"seconds"`
	Group   int64    `json:"group_bytes"` // sent to the group
	TCP     int64    `json:"tcp_bytes"`   // sent to single receivers, of all
	Hosts   []Status `json:"hosts"`
}

// sender copies files to hosts.
type sender struct {
	o         *SendOptions
	id        *oob.Identity
	hello     hello
	source    *source
	targets   []*target
	sentGroup atomic.Int64
	sentTCP   atomic.Int64
}

// Send copies files and directories to hosts. The result is there with an error too, once
// a host has been reached. Sockets are opened in the network namespace of the calling
// thread.
func Send(ctx context.Context, o *SendOptions) (*Result, error) {
	o.Host.Log = o.Say
	if err := o.check(); err != nil {
		return nil, err
	}
	start := time.Now()
	s := &sender{o: o, hello: hello{Chunk: o.Chunk, Window: o.Window, MTU: o.MTU, Key: make([]byte, keySize)}}
	_, _ = rand.Read(s.hello.Key) // never fails
	var err error
	if s.id, err = o.Local.identity(); err != nil {
		return nil, err
	}
	if s.source, err = gather(o.Files, o.Chunk, o.Say); err != nil {
		return nil, err
	}
	defer s.source.close()
	for _, h := range o.Hosts {
		s.targets = append(s.targets, &target{host: h, s: s})
	}
	if o.Progress != nil {
		stop := s.progress()
		defer stop()
	}
	err = s.run(ctx)
	r := &Result{Files: len(s.source.m.entries), Bytes: s.source.m.bytes, Seconds: time.Since(start).Seconds(), Group: s.sentGroup.Load(), TCP: s.sentTCP.Load()}
	failed := 0
	for _, t := range s.targets {
		x := t.status()
		if !x.Whole {
			failed++
			if x.Error == "" && err != nil {
				x.Error = err.Error()
			}
		}
		r.Hosts = append(r.Hosts, x)
		if t.w != nil {
			if err != nil {
				t.w.fail(err)
			}
			t.w.close()
		}
	}
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d of %d hosts do not have all files: the same command again sends what they miss", failed, len(s.targets))
	}
	return r, errors.Join(err, s.source.changed())
}

// run copies; what fails at single hosts is theirs.
func (s *sender) run(ctx context.Context) error {
	for _, t := range s.targets {
		if err := t.dial(ctx, s.id); err != nil { // one after the other: sockets are opened by the calling thread
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			t.lost(err)
			s.o.Say(fmt.Sprintf("%s: %v", t.host, err))
		}
	}
	s.each(s.alive(), func(t *target) error { return t.begin(ctx) })
	if s.o.GroupIP.IsValid() {
		if err := s.multicast(ctx); err != nil {
			return err
		}
	}
	s.each(s.alive(), func(t *target) error { return t.unicast(ctx) })
	return s.again(ctx)
}

// again gives hosts whose connection has ended, and that can be reached, the rest.
func (s *sender) again(ctx context.Context) error {
	var back []*target
	for _, t := range s.targets {
		err := t.failed()
		var theirs remoteError
		if err == nil || t.w == nil || errors.As(err, &theirs) || ctx.Err() != nil {
			continue
		}
		s.o.Say(fmt.Sprintf("%s: once more, since: %v", t.host, err))
		<-t.gone
		if e := t.dial(ctx, s.id); e != nil {
			t.fail(fmt.Errorf("%w; then: %w", err, e))
			continue
		}
		back = append(back, t)
	}
	s.each(back, func(t *target) error {
		if err := t.begin(ctx); err != nil {
			return err
		}
		return t.unicast(ctx)
	})
	return context.Cause(ctx)
}

// alive are the targets without an error that are not done.
func (s *sender) alive() (list []*target) {
	for _, t := range s.targets {
		if t.failed() == nil && !t.whole {
			list = append(list, t)
		}
	}
	return list
}

// each runs f for all targets at once. Its error becomes the target's.
func (s *sender) each(list []*target, f func(*target) error) {
	var all sync.WaitGroup
	for _, t := range list {
		all.Go(func() {
			if err := f(t); err != nil {
				if e := t.failed(); e == nil {
					s.o.Say(fmt.Sprintf("%s: %v", t.host, err))
				}
				t.lost(err) // before the receiver is told: the end of its connection is no cause
				t.w.fail(err)
				t.fail(err)
			}
		})
	}
	all.Wait()
}

// progress calls Progress until the returned function is called.
func (s *sender) progress() func() {
	end, ended := make(chan struct{}), make(chan struct{})
	show := func() {
		var list []Status
		for _, t := range s.targets {
			list = append(list, t.status())
		}
		s.o.Progress(list)
	}
	go func() {
		defer close(ended)
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				show()
			case <-end:
				show()
				return
			}
		}
	}()
	return func() { close(end); <-ended }
}
