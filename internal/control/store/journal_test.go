// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/envelope"
)

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestJournal(t *testing.T) {
	j := NewJournal()
	if p := j.After(ended(), 0); len(p.Events) != 0 || p.Last != 0 || p.Lost != 0 {
		t.Errorf("empty: %+v", p)
	}
	j.Add(api.Event{Kind: api.EventLeft})
	if p := j.After(ended(), 0); len(p.Events) != 1 || p.Events[0].Seq != 1 || p.Events[0].Time.IsZero() {
		t.Errorf("one event: %+v", p)
	}
	const n = 3*journalSize + 7
	for range n - 1 {
		j.Add(api.Event{Kind: api.EventLeft})
	}
	p := j.After(ended(), 0)
	if len(p.Events) > journalSize || p.Last != n || p.Lost+uint64(len(p.Events)) != n || p.Events[0].Seq != p.Lost+1 {
		t.Errorf("%d events kept, %d lost, last %d", len(p.Events), p.Lost, p.Last)
	}
	for i, e := range p.Events {
		if e.Seq != p.Events[0].Seq+uint64(i) {
			t.Fatalf("event %d follows %d", e.Seq, p.Events[i-1].Seq)
		}
	}
	if p := j.After(ended(), n-2); len(p.Events) != 2 || p.Lost != 0 {
		t.Errorf("the last two: %+v", p)
	}
	if p := j.After(ended(), n); len(p.Events) != 0 {
		t.Errorf("after the last: %+v", p)
	}
	// The asker knows a later one: the daemon has been restarted.
	if again := j.After(ended(), n+100); len(again.Events) != len(p.Events) {
		t.Errorf("after a restart: %d events", len(again.Events))
	}
}

// Who asks for what is still to come waits for the next event.
func TestJournalIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := NewJournal()
		waited := make(chan *api.Events, 1)
		go func() { waited <- j.After(t.Context(), 0) }()
		synctest.Wait()
		if len(waited) != 0 {
			t.Error("nobody has waited")
		}
		j.Add(api.Event{Kind: api.EventLeft})
		if synctest.Wait(); len(waited) != 1 || len((<-waited).Events) != 1 {
			t.Error("the event was not told")
		}
	})
}

// A full journal makes room when the next event comes: an eighth of it, or half of what the origin with the
// most events has, which is the one that had as many first. Events that made room are counted by kind still.
func TestRoomInTheJournal(t *testing.T) {
	for name, c := range map[string]struct {
		origins, made int
	}{"one origin": {1, journalSize / 8}, "two": {2, journalSize / 8}, "eight": {8, journalSize / 16}, "one of each event": {journalSize, 1}} {
		j := NewJournal()
		for i := range journalSize + 1 {
			if n := len(j.events); i == journalSize && n != journalSize {
				t.Errorf("%s: %d events before the last", name, n)
			}
			j.AddBy(envelope.Actor{Key: envelope.KeyID(i % c.origins), Addr: netip.MustParseAddrPort("10.0.0.1:4797")}, api.Event{Kind: api.EventLeft})
		}
		if n := journalSize + 1 - len(j.events); n != c.made {
			t.Errorf("%s: %d events made room, want %d", name, n, c.made)
		}
		if j.events[0].Seq == 1 {
			t.Errorf("%s: the oldest event did not make room", name)
		}
		if n := j.Totals()[api.EventLeft]; n != journalSize+1 {
			t.Errorf("%s: %d events in all", name, n)
		}
	}
}

// A holder of a key who causes events without end, from many addresses, leaves those of others
// in the journal, and loses its own ones. Events that made room are counted as lost.
func TestJournalOfOthersStays(t *testing.T) {
	j := NewJournal()
	by := func(key envelope.KeyID, host int) envelope.Actor {
		return envelope.Actor{Key: key, Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(host >> 16), byte(host >> 8), byte(host)}), 4797)}
	}
	const honest, flood = 300, 10 * journalSize
	for i := range flood {
		j.AddBy(by(7, i), api.Event{Kind: api.EventRegistered})
		if i%(flood/honest) == 0 && i/(flood/honest) < honest {
			j.AddBy(by(1, 1), api.Event{Kind: api.EventEnded})
			j.Add(api.Event{Kind: api.EventEvicted})
		}
	}
	p := j.After(ended(), 0)
	kept := make(map[string]int)
	for i, e := range p.Events {
		if kept[e.Kind]++; i > 0 && e.Seq <= p.Events[i-1].Seq {
			t.Fatalf("event %d follows %d", e.Seq, p.Events[i-1].Seq)
		}
	}
	if kept[api.EventEnded] != honest || kept[api.EventEvicted] != honest {
		t.Errorf("%v are kept, want %d of others", kept, honest)
	}
	if n := p.Lost + uint64(len(p.Events)); n != p.Last || len(p.Events) > journalSize {
		t.Errorf("%d events are kept and %d lost, of %d", len(p.Events), p.Lost, p.Last)
	}
	if p := j.After(ended(), p.Last-1); len(p.Events) != 1 || p.Lost != 0 {
		t.Errorf("the last one: %d events, %d lost", len(p.Events), p.Lost)
	}
}
