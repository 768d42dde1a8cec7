// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/lab/fabric"
)

// reasons are the kinds of events that say why a group does not go on. A disagreement on the source is
// none: it is noted, and a group that stands still because of it has met a defect.
var reasons = []string{api.EventEnded, api.EventFailed, api.EventEvicted, api.EventRefused, api.EventMismatch, api.EventLeft}

// said is an event of a switch's journal. The journal itself ends with its gleamd.
type said struct {
	group netip.Addr
	at    time.Time
	text  string
	out   netip.Addr // the member that was evicted, or has left
}

// follow collects a switch's events until ctx ends.
func (r *round) follow(ctx context.Context, s *fabric.Switch) {
	client := r.bed.Gleamds[s.Name].Client
	for after := uint64(0); ctx.Err() == nil; {
		es, err := client.Events(ctx, after, time.Second)
		if err != nil { // it is down
			sleep(ctx, 10*time.Millisecond)
			after = 0
			continue
		}
		if es.Last < after { // it has restarted
			after = 0
			continue
		}
		after = es.Last
		r.collect(s.Name, es.Events)
	}
}

func (r *round) collect(name string, events []api.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range events {
		if e.Kind == api.EventConflict {
			r.notes = append(r.notes, fmt.Sprintf("%8.3f s  %s: %s", time.Since(r.begin).Seconds(), name, e.Reason))
		}
		if e.Group.IsValid() && slices.Contains(reasons, e.Kind) {
			x := said{group: e.Group, at: e.Time, text: fmt.Sprintf("%s: %s %v %s", name, e.Kind, e.Member, e.Reason)}
			if e.Kind == api.EventEvicted || e.Kind == api.EventLeft {
				x.out = e.Member
			}
			r.journal = append(r.journal, x)
		}
	}
}

// why is what the switches' journals say about a group since a time; "": nothing.
func (r *round) why(group netip.Addr, since time.Time) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, x := range r.journal {
		if x.group == group && x.at.After(since) {
			all = append(all, x.text)
		}
	}
	return strings.Join(all, "; ")
}

// expelled reports whether a journal says that a member is out of a group since a time.
func (r *round) expelled(group, member netip.Addr, since time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.journal, func(x said) bool { return x.group == group && x.out == member && x.at.After(since) })
}
