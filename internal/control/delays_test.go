// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/dataplane"
	"github.com/gleam-rdma/gleam/dataplane/blame"
)

var delayEvents = []string{api.EventSlow, api.EventStalled, api.EventResumed}

// What delays a group is an event with the member, its port and the PSN, once; and so is its end.
// Where many groups are delayed at once, a part of them is reported, with the number of the others.
func TestDelayEvents(t *testing.T) {
	f := newFakeSwitch(t, 4, 1)
	f.register(0, 3, 0x100, "evict")
	var groups []*group
	report := func(g int, d dataplane.Delay) {
		f.control.do(func() {
			d.Since = f.control.now() - 2*time.Second
			f.control.reportDelay(groups[g], d)
		})
	}
	f.control.do(func() { groups = append(groups, f.control.dir.groups[fakeGroup(0)]) })
	accuse := func(list ...blame.Verdict) {
		f.control.do(func() {
			b := dataplane.Blamed{Count: len(list)}
			for i, v := range list {
				b.Members[i], b.Named[i] = v, f.control.now()-3*time.Second
			}
			f.control.reportBlamed(groups[0], &b)
		})
	}
	stalled, none := dataplane.Delay{Kind: dataplane.Stalled, Member: 1, Legs: 2, PSN: 7}, dataplane.Delay{}
	for _, d := range []dataplane.Delay{stalled, stalled, none, none} {
		report(0, d)
	}
	loss := blame.Verdict{Member: 2, Cause: blame.Loss, Waited: 1200 * time.Millisecond, Over: 4 * time.Second, NAKs: 9, Repaired: 143}
	rnr := blame.Verdict{Member: 1, Cause: blame.NotReady, Waited: 3 * time.Second, Over: 4 * time.Second, RNRNAKs: 1}
	accuse(loss)
	accuse(loss)
	accuse(rnr, loss)
	accuse(rnr)
	accuse()
	g, err := f.Group(fakeGroup(0))
	if err != nil {
		t.Fatal(err)
	}
	if g.SlowedBy.IsValid() {
		t.Errorf("no worker has found %v to be slow", g.SlowedBy)
	}
	es := f.events(0, delayEvents...)
	want := []struct {
		kind   string
		member int
		reason string
	}{
		{api.EventStalled, 1, "the ACK waits for this member and 1 more; it is at port f1"},
		{api.EventResumed, 1, "the ACK advances again, after "},
		{api.EventSlow, 2, "loss: 143 packets were sent to it again in the last 4s, after 9 NAKs; the ACK waited 1.2s of 4s for it beyond the others; it is at port f2"},
		{api.EventSlow, 1, "not ready: it had no receive posted, and sent 1 RNR NAK in the last 4s; the ACK waited 3s of 4s for it beyond the others; it is at port f1"},
		{api.EventResumed, 2, "loss: it costs the group no time any more, after 3"},
		{api.EventResumed, 1, "not ready: it costs the group no time any more, after 3"},
	}
	if len(es) != len(want) {
		t.Fatalf("%+v", es)
	}
	for i, w := range want {
		if m := g.Members[w.member]; es[i].Kind != w.kind || es[i].Member != m.IP || es[i].Port != m.Port || !strings.Contains(es[i].Reason, w.reason) {
			t.Errorf("%+v, want %+v", es[i], w)
		}
	}
	if es[0].PSN == nil || *es[0].PSN != 7 || es[2].PSN != nil {
		t.Errorf("PSNs: %+v", es)
	}

	f.control.do(func() {
		for i := range 1000 {
			d := none
			if i%2 == 0 {
				d = stalled
			}
			f.control.reportDelay(groups[0], d)
		}
		if n := f.control.outcomes.delaysUnreported; n < 900 {
			t.Errorf("%d of 1000 are left out", n)
		}
		f.control.outcomes.delayReports = dataplane.Policer{}
		f.control.reportDelay(groups[0], stalled)
	})
	if es = f.events(0, delayEvents...); len(es) > 110 || !strings.Contains(es[len(es)-1].Reason, "such events of other groups are left out before this one") {
		t.Errorf("%d events, the last one %+v", len(es), es[len(es)-1])
	}
}

// An event of a port names some members of groups that are behind it.
func TestPortEvents(t *testing.T) {
	f := newFakeSwitch(t, 4, 1)
	f.register(0, 3, 0x100, "evict")
	f.control.do(func() {
		f.control.portChanged(f.control.ports[1], "down")
		f.control.ports[1].wentDown()
		f.control.portChanged(f.control.ports[3], "up")
	})
	es := portEvents(f)
	if len(es) != 2 || es[0].Port != "f1" || es[0].Reason != "down; members there: 10.77.0.2" || es[1].Port != "f3" || es[1].Reason != "up" {
		t.Errorf("%+v", es)
	}
	if ports, err := f.Ports(); err != nil || ports[1].Downs != 1 || ports[1].LastDown == nil || ports[0].Downs != 0 || ports[0].LastDown != nil {
		t.Errorf("%v, %+v", err, ports)
	}
}

// portEvents are the journal's events of ports.
func portEvents(f *fakeSwitch) []api.Event {
	return slices.DeleteFunc(f.control.journal.After(ended(), 0).Events, func(e api.Event) bool { return e.Kind != api.EventPort })
}

// A loss that has cost nobody any time is told as one.
func TestLossesThatNobodyWaitsFor(t *testing.T) {
	v := &blame.Verdict{Cause: blame.Loss, Waited: 300 * time.Microsecond, Over: 4 * time.Second, NAKs: 90, Repaired: 700}
	if got, want := blamed(v)+". "+blameText(v), "loses packets that the others get. loss: 700 packets were sent to it again in the last 4s, after 90 NAKs; the ACK has not waited for it beyond the others so far"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
