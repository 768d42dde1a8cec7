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

// followEvents writes an Events a line for each time that some have occurred, and an empty
// one each minute without any, until the client or the server ends.
func (h *handler) followEvents(w http.ResponseWriter, r *http.Request) error {
	since, _, err := parseEvents(r)
	if err != nil {
		return err
	}
	if err := workOf(r).poll(); err != nil {
		return err
	}
	out := newLines(w)
	w.WriteHeader(http.StatusOK)
	if out.flush() != nil { // the header: events may be long in coming
		return nil
	}
	for {
		es, err := h.eventsAfter(r.Context(), since, maxPollTime)
		if err == nil {
			err = out.write(es)
		}
		if err == nil {
			err = out.flush()
		}
		if err != nil || r.Context().Err() != nil || h.ending().Err() != nil {
			return nil // the status is out already: the end of the stream says it all
		}
		since = es.Last
	}
}
