// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxPollTime bounds the time of a request for events.
const maxPollTime = time.Minute

// EventFilter selects events. The zero value selects all.
type EventFilter struct {
	Group netip.Addr // group of the events; invalid: all groups, and events of no group
	Kinds []string   // values of EventKinds; none: all
	From  time.Time  // time of the oldest event; zero: no bound
}

// Validate returns what is wrong with the filter.
func (f *EventFilter) Validate() error {
	for _, k := range f.Kinds {
		if !slices.Contains(EventKinds, k) {
			return fmt.Errorf("kind %q: there is none of that name; there are %s", k, strings.Join(EventKinds, ", "))
		}
	}
	return nil
}

// selects says whether the filter selects e.
func (f *EventFilter) selects(e *Event) bool {
	return (!f.Group.IsValid() || e.Group == f.Group) && (len(f.Kinds) == 0 || slices.Contains(f.Kinds, e.Kind)) && !e.Time.Before(f.From)
}

// query adds the filter to the parameters of a request.
func (f *EventFilter) query(q url.Values) {
	if f.Group.IsValid() {
		q.Set("group", f.Group.String())
	}
	if len(f.Kinds) > 0 {
		q.Set("kind", strings.Join(f.Kinds, ","))
	}
	if !f.From.IsZero() {
		q.Set("from", f.From.UTC().Format(time.RFC3339Nano))
	}
}

// eventsWanted is what a request for events asks for.
type eventsWanted struct {
	since  uint64
	wait   time.Duration
	filter EventFilter
}

// parseEvents reads the parameters of a request for events.
func parseEvents(r *http.Request) (w eventsWanted, err error) {
	for key, values := range r.URL.Query() {
		if len(values) > 1 {
			return w, refuse(http.StatusBadRequest, "%s is given %d times: want it once", key, len(values))
		}
		switch v := values[0]; key {
		case "since":
			if w.since, err = strconv.ParseUint(v, 10, 64); err != nil {
				return w, refuse(http.StatusBadRequest, "since=%q: not the number of an event", v)
			}
		case "wait":
			if w.wait, err = time.ParseDuration(v); err != nil || w.wait < 0 {
				return w, refuse(http.StatusBadRequest, "wait=%q: not a duration such as 30s", v)
			}
		case "group":
			if w.filter.Group, err = netip.ParseAddr(v); err != nil || w.filter.Group.Zone() != "" {
				return w, refuse(http.StatusBadRequest, "group=%q: not the IP address of a group", v)
			}
			w.filter.Group = w.filter.Group.Unmap()
		case "kind":
			w.filter.Kinds = strings.Split(v, ",")
			if err := w.filter.Validate(); err != nil {
				return w, refuse(http.StatusBadRequest, "%s", err)
			}
		case "from":
			if w.filter.From, err = time.Parse(time.RFC3339, v); err != nil {
				return w, refuse(http.StatusBadRequest, "from=%q: not a time such as 2026-05-06T07:08:09Z", v)
			}
		default:
			return w, refuse(http.StatusBadRequest, "%q: no such parameter; there are since, wait, group, kind and from", key)
		}
	}
	return w, nil
}

func (h *handler) events(r *http.Request, _ string) (any, error) {
	wanted, err := parseEvents(r)
	if err != nil {
		return nil, err
	}
	work := workOf(r)
	if err := work.poll(); err != nil {
		return nil, err
	}
	if wantsLines(r) {
		return h.followEvents(wanted), nil
	}
	es, err := h.eventsAfter(r.Context(), wanted)
	if err != nil {
		return nil, err
	}
	return es, work.resume(r.Context())
}

// eventsAfter waits for events that are wanted, for as long as is wanted at most, and not beyond
// the end of ctx or of the server.
func (h *handler) eventsAfter(ctx context.Context, w eventsWanted) (*Events, error) {
	ctx, cancel := context.WithTimeout(ctx, min(w.wait, maxPollTime))
	defer cancel()
	stop := context.AfterFunc(h.ending(), cancel)
	defer stop()
	for lost := uint64(0); ; {
		es, err := h.backend.Events(ctx, w.since)
		if err != nil {
			return nil, err
		}
		es.Events = slices.DeleteFunc(es.Events, func(e Event) bool { return !w.filter.selects(&e) })
		es.Lost += lost
		if len(es.Events) > 0 || ctx.Err() != nil {
			return es, nil
		}
		w.since, lost = es.Last, es.Lost
	}
}

// followEvents streams an Events at once, one for each time that some have occurred, and one
// each minute without any.
func (h *handler) followEvents(w eventsWanted) stream {
	return func(ctx context.Context, emit func(v any, more bool) error) error {
		for w.wait = 0; ; w.wait = maxPollTime {
			es, err := h.eventsAfter(ctx, w)
			if err != nil {
				return err
			}
			if err := emit(es, false); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return nil
			}
			w.since = es.Last
		}
	}
}
