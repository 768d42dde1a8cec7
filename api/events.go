// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// maxPollTime bounds the time of a request for events.
const maxPollTime = time.Minute

// parseEvents reads the parameters of a request for events.
func parseEvents(r *http.Request) (since uint64, wait time.Duration, err error) {
	q := r.URL.Query()
	for key := range q {
		switch v := q.Get(key); key {
		case "since":
			if since, err = strconv.ParseUint(v, 10, 64); err != nil {
				return 0, 0, refuse(http.StatusBadRequest, "since=%q: not the number of an event", v)
			}
		case "wait":
			if wait, err = time.ParseDuration(v); err != nil || wait < 0 {
				return 0, 0, refuse(http.StatusBadRequest, "wait=%q: not a duration such as 30s", v)
			}
		default:
			return 0, 0, refuse(http.StatusBadRequest, "%q: no such parameter; there are since and wait", key)
		}
	}
	return since, wait, nil
}

func (h *handler) events(r *http.Request, _ string) (any, error) {
	since, wait, err := parseEvents(r)
	if err != nil {
		return nil, err
	}
	work := workOf(r)
	if err := work.poll(); err != nil {
		return nil, err
	}
	if wantsLines(r) {
		return h.followEvents(since), nil
	}
	es, err := h.eventsAfter(r.Context(), since, wait)
	if err != nil {
		return nil, err
	}
	return es, work.resume(r.Context())
}

// eventsAfter waits for events after since, for wait at most, and not beyond the end of
// ctx or of the server.
func (h *handler) eventsAfter(ctx context.Context, since uint64, wait time.Duration) (*Events, error) {
	ctx, cancel := context.WithTimeout(ctx, min(wait, maxPollTime))
	defer cancel()
	stop := context.AfterFunc(h.ending(), cancel)
	defer stop()
	return h.backend.Events(ctx, since)
}

// followEvents streams an Events at once, one for each time that some have occurred, and one
// each minute without any.
func (h *handler) followEvents(since uint64) stream {
	return func(ctx context.Context, emit func(v any, more bool) error) error {
		for wait := time.Duration(0); ; wait = maxPollTime {
			es, err := h.eventsAfter(ctx, since, wait)
			if err != nil {
				return err
			}
			if err := emit(es, false); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return nil
			}
			since = es.Last
		}
	}
}
