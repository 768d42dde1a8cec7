// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSummarize(t *testing.T) {
	us := func(list ...float64) (d []time.Duration) {
		for _, v := range list {
			d = append(d, time.Duration(v*1000))
		}
		return d
	}
	thousand := make([]float64, 1000)
	for i := range thousand {
		thousand[i] = float64(1000 - i)
	}
	for _, c := range []struct {
		name    string
		samples []float64
		want    Latency
	}{
		{"one", []float64{3}, Latency{Min: 3, Max: 3, Typical: 3, Avg: 3, P99: 3, P999: 3}},
		{"two", []float64{4, 2}, Latency{Min: 2, Max: 4, Typical: 3, Avg: 3, Stdev: 1, P99: 4, P999: 4}},
		{"odd", []float64{9, 1, 2}, Latency{Min: 1, Max: 9, Typical: 2, Avg: 4, Stdev: 3.559026, P99: 9, P999: 9}},
		{"thousand", thousand, Latency{Min: 1, Max: 1000, Typical: 500.5, Avg: 500.5, Stdev: 288.674990, P99: 990, P999: 999}},
	} {
		got := summarize(us(c.samples...))
		if fmt.Sprintf("%.6f", got) != fmt.Sprintf("%.6f", c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// The percentiles are samples that so many others do not exceed, and as small
// as that allows.
func TestNearestRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 100_000).Draw(t, "n")
		for _, p := range [][2]int{{99, 100}, {999, 1000}} {
			i := nearestRank(n, p[0], p[1])
			if i < 0 || i >= n || (i+1)*p[1] < n*p[0] || i*p[1] >= n*p[0] {
				t.Fatalf("%d samples, %d/%d: place %d", n, p[0], p[1], i)
			}
		}
	})
}

func TestMeter(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	// 100 messages: a stretch is 10. The second ten come in 1 ms, the rest in 10 each.
	m := newMeter(100, 0)
	m.begin(at(0))
	now := 0
	for i := range 10 {
		now += 10
		if i == 1 {
			now -= 9
		}
		m.add(at(now), 10)
	}
	if r := m.rate(); r.count != 100 || r.seconds != 0.091 || r.peak != 10_000 || int(r.avg) != 1098 {
		t.Errorf("%+v", r)
	}
	// By time: 100 ms each. The last 30 ms are quicker, and too short to count.
	m = newMeter(0, 0)
	m.begin(at(0))
	m.add(at(50), 10)
	m.add(at(100), 10)
	m.add(at(210), 55)
	m.add(at(240), 100)
	if r := m.rate(); r.count != 175 || r.peak != max(500, r.avg) || r.seconds != 0.24 {
		t.Errorf("%+v", r)
	}
	// One message at once: no time, no rate, no division by it.
	m = newMeter(1, 0)
	m.begin(at(5))
	m.add(at(5), 1)
	if r := m.rate(); r.avg != 0 || r.peak != 0 || r.count != 1 {
		t.Errorf("%+v", r)
	}
	if n := testing.AllocsPerRun(100, func() { m.add(at(7), 1) }); n != 0 {
		t.Errorf("add allocates %v times", n)
	}
}

func TestRelays(t *testing.T) {
	for _, c := range []struct {
		mode string
		n    int
		want string // what ranks 0 to n send to
	}{
		{Group, 3, "[[] [] [] []]"},
		{Unicasts, 3, "[[1 2 3] [] [] []]"},
		{Chain, 1, "[[1] []]"},
		{Chain, 3, "[[1] [2] [3] []]"},
		{Tree, 1, "[[1] []]"},
		{Tree, 3, "[[1 2] [3] [] []]"},
		{Tree, 7, "[[1 2 4] [3 5] [6] [7] [] [] [] []]"},
		{Tree, 4, "[[1 2 4] [3] [] [] []]"},
	} {
		var got [][]int
		for r := range c.n + 1 {
			got = append(got, forwarders(c.mode, r, c.n))
		}
		if s := fmt.Sprint(got); s != c.want {
			t.Errorf("%s of %d: %s, want %s", c.mode, c.n, s, c.want)
		}
	}
}

// Every receiver gets everything exactly once, and nobody sends in a circle; in
// a tree it is as few rounds as doubling allows.
func TestRelaysReachAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "receivers")
		mode := rapid.SampledFrom([]string{Unicasts, Chain, Tree}).Draw(t, "mode")
		times := make([]int, n+1)
		for r := range n + 1 {
			for _, to := range forwarders(mode, r, n) {
				times[to]++
			}
		}
		from := sources(mode, n)
		for r := 1; r <= n; r++ {
			if times[r] != 1 {
				t.Fatalf("%d gets it %d times", r, times[r])
			}
			hops := 0
			for x := r; x > 0; x = from[x] {
				if hops++; hops > n {
					t.Fatalf("%d is in a circle", r)
				}
			}
			if mode == Tree && 1<<(hops-1) > n {
				t.Fatalf("%d of %d receivers is %d hops away", r, n, hops)
			}
		}
	})
}

// The pieces of a message cover it, one after the other, and messages that are
// outstanding together do not overlap.
func TestLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Defaults(WriteBW)
		p.Mode = rapid.SampledFrom(Modes).Draw(t, "mode")
		p.Size = rapid.IntRange(1, 1<<20).Draw(t, "size")
		p.Chunk = rapid.IntRange(minChunk, 1<<20).Draw(t, "chunk")
		p.Depth = rapid.IntRange(1, 300).Draw(t, "depth")
		l := newLayout(&p, p.Size)
		end := -1
		for m := range min(3, l.slots) {
			for c := range l.chunks {
				s := l.segment(nil, m*l.chunks+c)
				if c == 0 && s.Offset < end || c > 0 && s.Offset != end || s.Len < 1 {
					t.Fatalf("message %d piece %d: %+v after %d", m, c, s, end)
				}
				end = s.Offset + s.Len
			}
			if end != (m+1)*p.Size {
				t.Fatalf("message %d of %d bytes ends at %d", m, p.Size, end)
			}
		}
		if last := l.segment(nil, l.slots*l.chunks-1); last.Offset+last.Len > p.memory() {
			t.Fatalf("%+v is outside of %d bytes", last, p.memory())
		}
		if again := l.segment(nil, l.slots*l.chunks); again.Offset != 0 {
			t.Fatalf("the slots do not begin again: %+v", again)
		}
	})
}

func TestPattern(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := make([]byte, rapid.IntRange(1, 100).Draw(t, "length"))
		seed, lane, m := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 63).Draw(t, "lane"), rapid.IntRange(0, 1<<20).Draw(t, "message")
		word := pattern(seed, lane, m)
		fill(b, word)
		if err := checkFilled(b, word); err != nil {
			t.Fatal(err)
		}
		at, bit := rapid.IntRange(0, len(b)-1).Draw(t, "at"), rapid.IntRange(0, 7).Draw(t, "bit")
		b[at] ^= 1 << bit
		if err := checkFilled(b, word); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("byte %d is", at)) {
			t.Fatalf("byte %d: %v", at, err)
		}
	})
	// Messages, lanes and seeds differ from their neighbours in the first bytes.
	seen := make(map[uint64]bool)
	for seed := range uint64(4) {
		for lane := range 8 {
			for m := range 1000 {
				seen[pattern(seed, lane, m)] = true
			}
		}
	}
	if len(seen) != 4*8*1000 {
		t.Errorf("%d different patterns of %d", len(seen), 4*8*1000)
	}
}

func TestSlotsAndIterations(t *testing.T) {
	for _, c := range []struct {
		test        string
		size, depth int
		slots, n    int
	}{
		{WriteBW, 2, 128, 128, 5000},
		{WriteBW, 64 << 10, 128, 128, 5000},
		{WriteBW, 8 << 20, 128, 8, 64},
		{SendBW, 1 << 30, 128, 2, 16},
		{SendBW, 1 << 30, 1, 1, 16},
		{WriteLat, 2, 128, 1, 1000},
		{SendLat, 8 << 20, 128, 1, 64},
		{Replicate, 8 << 10, 32, 256, 5000},
		{Replicate, 512 << 10, 32, 128, 1024},
		{Replicate, 512 << 20, 32, 2, 16},
	} {
		p := Defaults(c.test)
		p.Depth, p.Size = c.depth, c.size
		if s, n := p.slots(c.size), p.iterations(c.size); s != c.slots || n != c.n {
			t.Errorf("%s of %d bytes: %d slots, %d iterations; want %d and %d", c.test, c.size, s, n, c.slots, c.n)
		}
	}
	p := Defaults(WriteBW)
	p.All = true
	if s := p.sizes(); len(s) != 23 || s[0] != 2 || s[22] != 8<<20 || !slices.IsSorted(s) {
		t.Errorf("sizes %v", s)
	}
}

// A receiver that was kept from looking until the last message had come measured
// nothing: 5000 messages in 28 µs are no 178 million a second.
func TestReceivedAtOnce(t *testing.T) {
	sent := rate{count: 5000, seconds: 0.02, avg: 250_000, peak: 300_000}
	for _, c := range []struct {
		name string
		res  *result
		want float64 // million messages a second
	}{
		{"in its own time", &result{Seconds: 0.019, Counted: 4999, Peak: 290_000}, 4999 / 0.019 / 1e6},
		{"in half of the time", &result{Seconds: 0.01, Counted: 4999, Peak: 290_000}, 4999 / 0.01 / 1e6},
		{"first and last at once", &result{Seconds: 28e-6, Counted: 4999, Peak: 1e9}, 0.25},
		{"nothing counted", &result{}, 0.25},
		{"no result", nil, 0.25},
	} {
		if got := received(2, sent, c.res); math.Abs(got.Rate-c.want) > 1e-9 {
			t.Errorf("%s: %v Mpps, want %v", c.name, got.Rate, c.want)
		}
	}
}
