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
)

// Interval is the least time between two samples, for all browsers together.
const Interval = time.Second

// share bounds the part of the time for which the switch is asked: a sample that took long
// makes the next one wait.
const share = 10

// sampler asks the switch, once for all browsers, and not at all while there are none.
type sampler struct {
	ctx      context.Context // ends with the server
	backend  Backend
	version  api.Version
	interval time.Duration

	mu      sync.Mutex
	readers map[*reader]struct{}
	running bool
	events  *api.Events // the last ones, for browsers that come
}

// reader is a browser. in has room for one sample: a browser that has not taken the last one
// when the next is there is dropped.
type reader struct{ in chan []byte }

func newSampler(ctx context.Context, b Backend, v api.Version, interval time.Duration) *sampler {
	return &sampler{ctx: ctx, backend: b, version: v, interval: interval, readers: make(map[*reader]struct{})}
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
	if !s.running {
		s.running = true
		go s.run()
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

// run sends samples until no browser is left.
func (s *sampler) run() {
	for {
		begin := time.Now()
		text := s.take(begin)
		if !s.send(text) {
			return
		}
		wait := max(s.interval-time.Since(begin), (share-1)*time.Since(begin))
		select {
		case <-time.After(wait):
		case <-s.ctx.Done():
		}
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
	s.running = len(s.readers) > 0
	return s.running
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
