// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/observe/watch"
)

// Least times between two samples, for all browsers together.
const (
	Interval     = time.Second
	idleInterval = 10 * time.Second // the interval while there is no browser: for the history
)

// share bounds the part of the time for which the switch is asked: a sample that took long
// makes the next one wait.
const share = 10

// sampler asks the switch, once for all browsers, and seldom while there are none.
type sampler struct {
	ctx            context.Context // ends with the server
	backend        Backend
	version        api.Version
	interval, idle time.Duration // the time between two samples, with browsers and without

	history *history
	before  *watch.Sample // the last one; run's alone
	came    chan struct{} // a browser came while there was none

	mu      sync.Mutex
	readers map[*reader]struct{}
	events  *api.Events // the last ones, for browsers that come
}

// reader is a browser. in has room for one sample: a browser that has not taken the last one
// when the next is there is dropped.
type reader struct{ in chan []byte }

func newSampler(ctx context.Context, b Backend, v api.Version, interval, idle time.Duration) *sampler {
	return &sampler{
		ctx: ctx, backend: b, version: v, interval: interval, idle: idle, history: newHistory(), came: make(chan struct{}, 1), readers: make(map[*reader]struct{}),
	}
}

// join returns a channel of samples, which is closed when the browser is dropped, and what it
// calls when it goes. It is not ok if there are too many.
func (s *sampler) join() (in <-chan []byte, leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.readers) >= maxReaders || s.ctx.Err() != nil {
		return nil, nil, false
	}
	// The first entry is for the events that were before.
	r := &reader{in: make(chan []byte, 2)}
	if s.events != nil {
		r.in <- message("events", s.events)
	}
	s.readers[r] = struct{}{}
	select {
	case s.came <- struct{}{}:
	default:
	}
	return r.in, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drop(r)
	}, true
}

func (s *sampler) drop(r *reader) {
	if _, ok := s.readers[r]; ok {
		delete(s.readers, r)
		close(r.in)
	}
}

// run sends samples until the server ends.
func (s *sampler) run() {
	for s.ctx.Err() == nil {
		begin := time.Now()
		looked := s.send(s.take(begin))
		took := time.Since(begin)
		s.wait(max(s.interval-took, (share-1)*took), nil)
		if !looked {
			s.wait(s.idle-s.interval, s.came)
		}
	}
	s.send(nil)
}

// wait waits for a time, or until a browser comes.
func (s *sampler) wait(d time.Duration, came <-chan struct{}) {
	select {
	case <-time.After(d):
	case <-came:
	case <-s.ctx.Done():
	}
}

// send gives a sample to all browsers. It is false if none is left.
func (s *sampler) send(text []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.readers {
		if s.ctx.Err() != nil {
			s.drop(r)
			continue
		}
		select {
		case r.in <- text:
		default:
			s.drop(r)
		}
	}
	return len(s.readers) > 0
}

// take asks the switch, and returns the messages to the browsers.
func (s *sampler) take(now time.Time) []byte {
	var text []byte
	if news := s.news(); news != nil {
		text = message("events", news)
	}
	x, err := s.sample(now)
	if err != nil {
		return append(text, message("trouble", &api.Error{Message: err.Error()})...)
	}
	return append(text, message("sample", x)...)
}

// maxEvents are sent to a browser that comes.
const maxEvents = 200

// news returns the events since the last call; nil if there are none.
func (s *sampler) news() *api.Events {
	now, cancel := context.WithCancel(s.ctx)
	cancel() // so that Events does not wait
	s.mu.Lock()
	first := s.events == nil
	var last uint64
	if !first {
		last = s.events.Last
	}
	s.mu.Unlock()
	es, err := s.backend.Events(now, last)
	if err != nil || es == nil || len(es.Events) == 0 && !first {
		return nil
	}
	news := *es
	news.Events = tail(es.Events)
	s.mu.Lock()
	defer s.mu.Unlock()
	all := news
	if !first && es.Last >= last {
		all.Events = tail(append(append([]api.Event(nil), s.events.Events...), news.Events...))
	}
	s.events = &all
	return &news
}

func tail(es []api.Event) []api.Event {
	return append([]api.Event{}, es[max(0, len(es)-maxEvents):]...)
}

// message is a server-sent event.
func message(kind string, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		kind = "trouble"
		text, _ = json.Marshal(&api.Error{Message: "the sample cannot be encoded: " + err.Error()})
	}
	return bytes.Join([][]byte{fmt.Appendf(nil, "event: %s\ndata: ", kind), text, []byte("\n\n")}, nil)
}
