// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/internal/observe/watch"
	"github.com/gleam-rdma/gleam/test/apitest"
)

// A step of a tier has the mean of rates and the largest of levels; one without points has nothing, and
// old ones are forgotten.
func TestHistory(t *testing.T) {
	h, begin := newHistory(), time.Unix(1_000_000, 0)
	for s := -2 * tiers[0].points; s < 25; s++ { // a ring goes round
		if s == 21 {
			continue // no sample
		}
		h.add(begin.Add(time.Duration(s)*time.Second), []point{{series: "x/rate", value: float64(s)}, {series: "x/lag", value: float64(100 - s), peak: true}, {series: "y/rate"}})
	}
	got := h.read("x/")
	fine, coarse := got[0].Series, got[1].Series
	if len(fine) != 2 || len(fine["x/rate"]) != 120 || len(coarse["x/rate"]) != 90 {
		t.Fatalf("%d series, %d and %d points", len(fine), len(fine["x/rate"]), len(coarse["x/rate"]))
	}
	at := func(list []*float32, back int) string {
		if v := list[len(list)-1-back]; v != nil {
			return fmt.Sprint(*v)
		}
		return "none"
	}
	for _, c := range []struct {
		name string
		list []*float32
		back int
		want string
	}{
		{"newest second", fine["x/rate"], 0, "24"}, {"second without a sample", fine["x/rate"], 3, "none"}, {"oldest second", fine["x/rate"], 119, "-95"}, {"before all", coarse["x/rate"], 30, "none"},
		{"mean of ten seconds", coarse["x/rate"], 1, "14.5"}, {"most of ten seconds", coarse["x/lag"], 1, "90"}, {"mean of some seconds", coarse["x/rate"], 0, "22.25"}, {"most of some seconds", coarse["x/lag"], 0, "80"},
	} {
		if got := at(c.list, c.back); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got[0].Last != 1_000_024 || got[1].Last != 1_000_020 {
		t.Errorf("the newest steps begin at %v and %v", got[0].Last, got[1].Last)
	}
	h.add(begin.Add(span()+time.Minute), []point{{series: "x/rate", value: 1}})
	if got := h.read("x/"); len(got[1].Series) != 1 || at(got[1].Series["x/rate"], 1) != "none" {
		t.Errorf("what is older than %v is still there: %v", span(), got[1].Series)
	}
}

// However many series there are, the memory has a bound.
func TestHistoryIsBounded(t *testing.T) {
	h := newHistory()
	var many []point
	for i := range 3 * maxSeries {
		many = append(many, point{series: fmt.Sprintf("group/%d", i)})
	}
	for s := range 3 {
		h.add(time.Unix(int64(s), 0), many)
	}
	if len(h.series) != maxSeries {
		t.Errorf("%d series, want %d", len(h.series), maxSeries)
	}
}

// The points of a sample are rates since the one before: of the switch, its ports, its groups, and
// the members of groups in which data is under way.
func TestPoints(t *testing.T) {
	source, receiver := netip.MustParseAddr("10.77.0.1"), netip.MustParseAddr("10.77.0.2")
	at := func(n uint64, before *watch.Sample) *watch.Sample {
		moving := api.Group{
			IP: netip.MustParseAddr("10.77.254.1"), Epoch: 1, Source: source, NextPSN: 41, AckPSN: 0, Counters: api.Counters{DataIn: 100 * n, GoodBytes: 1000 * n}, Repair: &api.Repair{Copies: 5 * n},
			Members: []api.Member{{IP: source, Role: "source"}, {IP: receiver, Role: "receiver", Lag: int(10 * n), Cost: &api.Cost{Repaired: 4 * n, Waited: 0.25 * float64(n)}}},
		}
		idle := api.Group{IP: netip.MustParseAddr("10.77.254.2"), Epoch: 1, State: "idle", Members: []api.Member{{IP: receiver}}}
		s := &watch.Sample{Time: time.Unix(int64(n), 0), Stats: &api.Stats{RxBytes: 2000 * n, Resent: 3 * n, Drops: map[string]uint64{"a": n, "b": n}}}
		s.Fill([]api.Group{moving, idle}, []api.Port{{Name: "p1", RxBytes: 10 * n, TxBytes: 20 * n}}, before)
		return s
	}
	first := at(1, nil)
	second := at(2, first)
	got := make(map[string]float64)
	for _, p := range pointsOf(second, first) {
		got[p.series] = p.value
	}
	want := map[string]float64{
		"switch/in": 16000, "switch/out": 160, "switch/resent": 3, "switch/dropped": 2, "port/p1/in": 80, "port/p1/out": 160, "group/10.77.254.1/in": 8000, "group/10.77.254.1/resent": 5,
		"group/10.77.254.1/10.77.0.2/lag": 20, "group/10.77.254.1/10.77.0.2/resent": 4, "group/10.77.254.1/10.77.0.2/waited": 0.25,
	}
	if len(got) != len(want) {
		t.Errorf("%d series, want %d: %v", len(got), len(want), got)
	}
	for name, v := range want {
		if got[name] != v {
			t.Errorf("%s: %v, want %v", name, got[name], v)
		}
	}
	if n := len(pointsOf(first, nil)); n > 0 {
		t.Errorf("%d points without a sample before", n)
	}
}

// The history is asked for in parts.
func TestHistoryRequest(t *testing.T) {
	s, err := newSite(t.Context(), apitest.Switch(), api.Version{}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	s.sampler.history.add(time.Unix(100, 0), []point{{series: "switch/in", value: 7}, {series: "group/10.0.0.1/in"}, {series: "group/10.0.0.10/in"}, {series: "group/fd77::1/in"}})
	for of, want := range map[string]string{"switch": "switch/in", "group/10.0.0.1": "group/10.0.0.1/in", "group/fd77:0::1": "group/fd77::1/in", "port": "", "group/": "400", "group/x": "400", "": "400", "group": "400"} {
		r := httptest.NewRequest("GET", "http://127.0.0.1/history?of="+of, nil)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			if fmt.Sprint(w.Code) != want {
				t.Errorf("of %q: status %d", of, w.Code)
			}
			continue
		}
		var got []past
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got) != len(tiers) {
			t.Errorf("of %q: %v: %s", of, err, w.Body)
			continue
		}
		names := ""
		for name := range got[0].Series {
			names += name
		}
		if names != want {
			t.Errorf("of %q: %q, want %q", of, names, want)
		}
	}
}
