// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/test/apitest"
)

// eventful is a backend to which events come.
type eventful struct {
	apitest.Backend
	mu      sync.Mutex
	list    []api.Event
	changed chan struct{}
}

func (b *eventful) Events(ctx context.Context, after uint64) (*api.Events, error) {
	for {
		b.mu.Lock()
		es, changed := &api.Events{Events: append([]api.Event{}, b.list[after:]...), Last: uint64(len(b.list))}, b.changed
		b.mu.Unlock()
		if len(es.Events) > 0 || ctx.Err() != nil {
			return es, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

func (b *eventful) add(kind string, group netip.Addr, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = append(b.list, api.Event{Seq: uint64(len(b.list) + 1), Kind: kind, Group: group, Time: at})
	close(b.changed)
	b.changed = make(chan struct{})
}

// TestEventFilter selects events by group, kind and time. A request waits through those that it
// does not want, and a stream has none of them.
func TestEventFilter(t *testing.T) {
	at := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	one, two, none := netip.MustParseAddr("10.77.254.1"), netip.MustParseAddr("fd77::6c65:2"), netip.Addr{}
	b := &eventful{changed: make(chan struct{})}
	for i, e := range []api.Event{
		{Kind: api.EventRegistered, Group: one}, {Kind: api.EventPort, Group: none}, {Kind: api.EventRegistered, Group: two},
		{Kind: api.EventStalled, Group: one}, {Kind: api.EventEvicted, Group: two}, {Kind: api.EventEvicted, Group: one},
	} {
		b.add(e.Kind, e.Group, at.Add(time.Duration(i)*time.Minute))
	}
	socket := filepath.Join(t.TempDir(), "s")
	ln, err := api.Listen(socket, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go api.Serve(ctx, ln, b, build, api.Access{})
	c := dial(t, socket)
	for _, x := range []struct {
		filter api.EventFilter
		since  uint64
		want   []uint64
	}{
		{api.EventFilter{}, 0, []uint64{1, 2, 3, 4, 5, 6}},
		{api.EventFilter{}, 4, []uint64{5, 6}},
		{api.EventFilter{Group: one}, 0, []uint64{1, 4, 6}},
		{api.EventFilter{Group: two}, 3, []uint64{5}},
		{api.EventFilter{Kinds: []string{api.EventEvicted, api.EventPort}}, 0, []uint64{2, 5, 6}},
		{api.EventFilter{From: at.Add(3 * time.Minute).In(time.FixedZone("", 3600))}, 0, []uint64{4, 5, 6}},
		{api.EventFilter{From: at.Add(4*time.Minute + 1)}, 0, []uint64{6}},
		{api.EventFilter{Group: one, Kinds: []string{api.EventEvicted, api.EventStalled}, From: at.Add(4 * time.Minute)}, 0, []uint64{6}},
		{api.EventFilter{Group: one, Kinds: []string{api.EventPort}}, 0, nil},
	} {
		es, err := c.SelectEvents(t.Context(), x.since, 0, &x.filter)
		if err != nil {
			t.Fatalf("%+v: %v", x.filter, err)
		}
		var got []uint64
		for _, e := range es.Events {
			got = append(got, e.Seq)
		}
		if !reflect.DeepEqual(got, x.want) || es.Last != 6 {
			t.Errorf("%+v after %d: %d of %d, want %d of 6", x.filter, x.since, got, es.Last, x.want)
		}
	}

	answer := make(chan *api.Events, 1)
	go func() {
		es, _ := c.SelectEvents(t.Context(), 6, time.Minute, &api.EventFilter{Kinds: []string{api.EventFailed}})
		answer <- es
	}()
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://gleamd/v1/events?since=6&kind=failed&group=10.77.254.1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", api.Lines)
	lines, err := unixClient(socket).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer lines.Body.Close()
	d := json.NewDecoder(lines.Body)
	next := func() (es api.Events) {
		if err := d.Decode(&es); err != nil {
			t.Fatal(err)
		}
		return es
	}
	if es := next(); len(es.Events) != 0 || es.Last != 6 {
		t.Errorf("the stream begins with %+v", es)
	}
	b.add(api.EventPort, none, at)
	b.add(api.EventFailed, two, at)
	b.add(api.EventFailed, one, at)
	if es := <-answer; es == nil || len(es.Events) == 0 || es.Events[0].Seq != 8 {
		t.Errorf("the request that waited got %+v", es)
	}
	if es := next(); len(es.Events) != 1 || es.Events[0].Seq != 9 || es.Last != 9 {
		t.Errorf("the stream goes on with %+v", es)
	}
}
