// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"testing"

	"github.com/gleam-rdma/gleam/api"
)

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestJournal(t *testing.T) {
	j := newJournal()
	if p := j.after(ended(), 0); len(p.Events) != 0 || p.Last != 0 || p.Lost != 0 {
		t.Errorf("empty: %+v", p)
	}
	waited := make(chan *api.Events)
	go func() { waited <- j.after(t.Context(), 0) }()
	j.add(api.Event{Kind: api.EventLeft})
	if p := <-waited; len(p.Events) != 1 || p.Events[0].Seq != 1 || p.Events[0].Time.IsZero() {
		t.Errorf("waited for %+v", p)
	}
	const n = 3*journalSize + 7
	for range n - 1 {
		j.add(api.Event{Kind: api.EventLeft})
	}
	p := j.after(ended(), 0)
	if len(p.Events) > journalSize || p.Last != n || p.Lost+uint64(len(p.Events)) != n || p.Events[0].Seq != p.Lost+1 {
		t.Errorf("%d events kept, %d lost, last %d", len(p.Events), p.Lost, p.Last)
	}
	for i, e := range p.Events {
		if e.Seq != p.Events[0].Seq+uint64(i) {
			t.Fatalf("event %d follows %d", e.Seq, p.Events[i-1].Seq)
		}
	}
	if p := j.after(ended(), n-2); len(p.Events) != 2 || p.Lost != 0 {
		t.Errorf("the last two: %+v", p)
	}
	if p := j.after(ended(), n); len(p.Events) != 0 {
		t.Errorf("after the last: %+v", p)
	}
	// The asker knows a later one: the daemon has been restarted.
	if again := j.after(ended(), n+100); len(again.Events) != len(p.Events) {
		t.Errorf("after a restart: %d events", len(again.Events))
	}
}
