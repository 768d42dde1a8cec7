// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dcqcn

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// plain has round numbers: a rate of 1000 Mbit/s, steps of 10 and 100.
var plain = Config{
	LineRate: 1000e6, MinRate: 1e6, G: 0.25, AlphaTimer: time.Millisecond, IncreaseTimer: 10 * time.Millisecond,
	ByteCounter: 1e6, F: 2, AI: 10e6, HAI: 100e6, Burst: time.Millisecond,
}

func newRP(t testing.TB, c Config) *ReactionPoint {
	t.Helper()
	r, err := NewReactionPoint(c)
	if err != nil {
		t.Fatal(err)
	}
	return &r
}

const ms = time.Millisecond

func mbit(t *testing.T, r *ReactionPoint, now time.Duration, want float64) {
	t.Helper()
	if got := float64(r.Rate(now)) / 1e6; math.Abs(got-want) > 0.001 {
		t.Errorf("at %v: %v Mbit/s, want %v", now, got, want)
	}
}

// TestCut: the first CNP halves the rate, alpha being 1, and the target is what
// the rate was.
func TestCut(t *testing.T) {
	r := newRP(t, plain)
	mbit(t, r, time.Hour, 1000)
	r.OnCNP(time.Hour)
	mbit(t, r, time.Hour, 500)
	if r.target != 1000e6 || r.alpha != 1 {
		t.Errorf("target %v, alpha %v", r.target, r.alpha)
	}
	r.OnCNP(time.Hour + ms)
	mbit(t, r, time.Hour+ms, 250)
	if r.target != 500e6 {
		t.Errorf("target %v after the second cut", r.target)
	}
}

// TestBurstOfCNPsCutsOnce: CNPs within AlphaTimer of a cut are of the same
// congestion.
func TestBurstOfCNPsCutsOnce(t *testing.T) {
	r := newRP(t, plain)
	for i := range 1000 {
		r.OnCNP(time.Duration(i) * time.Microsecond)
	}
	mbit(t, r, ms-1, 500)
	r.OnCNP(ms - 1)
	mbit(t, r, ms-1, 500)
	r.OnCNP(ms)
	mbit(t, r, ms, 250)
	if s := r.Stats(); s != (Stats{CNPs: 1002, Cuts: 2}) {
		t.Errorf("%+v", s)
	}
}

// TestAlpha: it falls by 1-G for each AlphaTimer without a CNP after that of the
// last cut, and rises at each cut.
func TestAlpha(t *testing.T) {
	for _, c := range []struct {
		quiet time.Duration // time from the first cut to the second
		want  float64       // the factor of the second
	}{
		{ms, 0.5}, {2*ms - 1, 0.5}, // no whole AlphaTimer went without
		{2 * ms, 1 - 0.75/2}, {3 * ms, 1 - 0.75*0.75/2}, {9 * ms, 1 - math.Pow(0.75, 8)/2},
	} {
		r := newRP(t, plain)
		r.OnCNP(0)
		r.OnCNP(c.quiet)
		mbit(t, r, c.quiet, 500*c.want)
		// and then it rises: (1-G)·alpha+G
		was := 2 * (1 - c.want)
		r.OnCNP(c.quiet + ms)
		mbit(t, r, c.quiet+ms, 500*c.want*(1-(0.75*was+0.25)/2))
	}
	r := newRP(t, plain)
	r.OnCNP(0)
	r.OnCNP(9 * ms)
	r.OnCNP(time.Hour) // at line rate, where alpha is 1 again
	mbit(t, r, time.Hour, 500)
}

// TestPhases walks through fast recovery, additive increase and hyper increase.
func TestPhases(t *testing.T) {
	r := newRP(t, plain)
	r.OnCNP(0)             // 500, target 1000
	mbit(t, r, 20*ms, 875) // the target stays at the line rate
	r = newRP(t, plain)
	r.OnCNP(0)
	r.OnCNP(ms)
	mbit(t, r, ms, 250) // target 500
	at := ms
	for i, want := range []float64{
		375,                // fast recovery: T=1, half-way to 500
		(375 + 510.) / 2,   // T=2=F: additive, target 510
		(442.5 + 520) / 2,  // T=3, target 520
		(481.25 + 530) / 2, // T=4, target 530: for as long as the byte counter stays behind
	} {
		at += 10 * ms
		mbit(t, r, at-1, []float64{250, 375, 442.5, 481.25}[i])
		mbit(t, r, at, want)
	}
	r.OnSent(at, 999_999)
	mbit(t, r, at, 505.625)
	r.OnSent(at, 1) // BC=1
	mbit(t, r, at, (505.625+540)/2)
	r.OnSent(at, 1e6) // BC=2
	mbit(t, r, at, (522.8125+550)/2)
	r.OnSent(at, 1e6) // BC=3, T=4: both above F, hyper
	mbit(t, r, at, (536.40625+650)/2)
	r.OnCNP(at) // all begins anew
	if r.timerRises != 0 || r.byteRises != 0 || r.sent != 0 || r.next != at+10*ms {
		t.Errorf("not reset: %+v", r)
	}
}

// TestCreditBeforeARise: the time before a rise counts at the rate before it.
func TestCreditBeforeARise(t *testing.T) {
	r := newRP(t, plain)
	r.OnCNP(0)
	r.OnSent(0, 999_999) // 500 Mbit/s for 10 ms leave 374,999 bytes, for 750 Mbit/s
	if at, want := r.NextSend(10*ms), 10*ms+3_999_990; at != want {
		t.Errorf("the next packet may go at %v, want %v", at, want)
	}
}

// TestRecoversToLineRate: without CNPs the rate is back at the line rate, with the
// defaults, well within a second, whatever it was.
func TestRecoversToLineRate(t *testing.T) {
	for _, line := range []int64{10e6, 100e6, 1e9, 10e9} {
		r := newRP(t, Config{LineRate: line})
		now := time.Duration(0)
		for range 100 {
			now += 2 * ms
			r.OnCNP(now)
		}
		mbit(t, r, now, float64(r.Config().MinRate)/1e6)
		if got := r.Rate(now + 700*ms); got != line {
			t.Errorf("%d: %d after 700 ms", line, got)
		}
		if r.belowLineRate {
			t.Error("the timers still run")
		}
	}
}

// TestPacer: a sender that sends whenever it may keeps to the rate, however seldom
// it looks, as long as that is within Burst.
func TestPacer(t *testing.T) {
	for _, rate := range []int64{1e6, 10e6, 333_333_333, 10e9} {
		for _, every := range []time.Duration{10 * time.Microsecond, 700 * time.Microsecond, 3 * ms} {
			r := newRP(t, Config{LineRate: rate})
			bytes := 0
			for now := time.Duration(0); now <= time.Second; now += every {
				for r.NextSend(now) <= now {
					r.OnSent(now, frame)
					bytes += frame
				}
			}
			want := float64(rate) / 8
			if math.Abs(float64(bytes)-want) > 2*frame+want*every.Seconds() {
				t.Errorf("%d bits/s, looking every %v: %d bytes in a second", rate, every, bytes)
			}
		}
	}
}

// TestBurstIsBounded: a sender that was idle has no more than Burst to make up
// for.
func TestBurstIsBounded(t *testing.T) {
	r := newRP(t, plain)
	now, bytes := time.Hour, frame
	r.OnSent(now, frame) // who sends need not have asked
	for r.NextSend(now) <= now {
		r.OnSent(now, frame)
		bytes += frame
	}
	if want := 125_000; bytes < want || bytes > want+frame {
		t.Errorf("%d bytes at once: want %d, what 1 ms carries", bytes, want)
	}
}

// TestNextSendIsExact: a packet may go at the time that NextSend names, and not
// before.
func TestNextSendIsExact(t *testing.T) {
	if at := newRP(t, plain).NextSend(0); at != 0 {
		t.Errorf("the first packet may go at %v", at)
	}
	rapid.Check(t, func(t *rapid.T) {
		r, err := NewReactionPoint(Config{LineRate: rapid.Int64Range(minLine, maxLine).Draw(t, "rate")})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "now"))
		for range 20 {
			for r.NextSend(now) <= now {
				r.OnSent(now, rapid.IntRange(1, 9000).Draw(t, "bytes"))
				if r.credit > 1e6 {
					r.OnSent(now, int(r.credit))
				}
			}
			at := r.NextSend(now)
			if at > now+1 && r.NextSend(at-2) <= at-2 {
				t.Fatalf("at %v nothing may go before %v, yet something may at %v", now, at, at-2)
			}
			if again := r.NextSend(at); again > at+1 {
				t.Fatalf("at %v, which NextSend has named, it says %v", at, again)
			}
			now = at + 1
		}
	})
}

// TestRateStaysInBounds: whatever happens, the rate is between MinRate and
// LineRate, a number, and the sender is never stopped for longer than its longest
// packet takes at MinRate.
func TestRateStaysInBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.Int64Range(minLine, maxLine).Draw(t, "line")
		c := Config{
			LineRate: line, MinRate: rapid.Int64Range(1, line).Draw(t, "min"), G: rapid.Float64Range(1e-9, 1).Draw(t, "g"),
			AlphaTimer:    time.Duration(rapid.Int64Range(1e3, 1e9).Draw(t, "alpha")),
			IncreaseTimer: time.Duration(rapid.Int64Range(1e3, 1e9).Draw(t, "increase")),
			ByteCounter:   rapid.Int64Range(1, 1e9).Draw(t, "counter"), F: rapid.IntRange(1, 10).Draw(t, "f"),
			AI: rapid.Int64Range(max(1, line/maxSteps), line).Draw(t, "ai"), HAI: line,
		}
		r, err := NewReactionPoint(c)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			now += time.Duration(rapid.OneOf(rapid.Int64Range(0, 1e4), rapid.Int64Range(0, 1e8), rapid.Just(int64(time.Hour))).Draw(t, "pause"))
			before := r.Rate(now)
			switch rapid.IntRange(0, 2).Draw(t, "event") {
			case 0:
				r.OnCNP(now)
				if r.Rate(now) > before {
					t.Fatalf("a CNP raised the rate from %d to %d", before, r.Rate(now))
				}
			case 1:
				if r.NextSend(now) <= now {
					r.OnSent(now, rapid.IntRange(1, 9000).Draw(t, "bytes"))
				}
			case 2:
				r.Rate(now)
			}
			if r.current < float64(c.MinRate) || r.current > float64(line) || r.target > float64(line) || r.alpha < 0 || r.alpha > 1 {
				t.Fatalf("rate %v, target %v, alpha %v; MinRate %d, LineRate %d", r.current, r.target, r.alpha, c.MinRate, line)
			}
			if wait, most := r.NextSend(now)-now, time.Duration(9000*8e9/float64(c.MinRate))+2; wait > most {
				t.Fatalf("stopped for %v: want at most %v", wait, most)
			}
		}
	})
}

func TestNothingAllocates(t *testing.T) {
	r := newRP(t, Config{LineRate: 1e9})
	n := NewNotificationPoint(50 * time.Microsecond)
	now := time.Duration(0)
	if got := testing.AllocsPerRun(1000, func() {
		now += 300 * time.Microsecond
		for r.NextSend(now) <= now {
			r.OnSent(now, frame)
		}
		if n.OnCE(now) {
			r.OnCNP(now)
		}
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// TestNotificationPoint: at most one CNP in each interval, and one for the first
// mark after it.
func TestNotificationPoint(t *testing.T) {
	n := NewNotificationPoint(50 * time.Microsecond)
	for _, c := range []struct {
		us   int
		want bool
	}{{0, true}, {0, false}, {49, false}, {50, true}, {60, false}, {1000, true}, {1049, false}, {1050, true}} {
		if got := n.OnCE(time.Duration(c.us) * time.Microsecond); got != c.want {
			t.Errorf("at %d µs: %v", c.us, got)
		}
	}
	n = NewNotificationPoint(0)
	if first, second := n.OnCE(5), n.OnCE(5); !first || !second {
		t.Error("interval 0 left out a mark")
	}
}

func TestConfigFaults(t *testing.T) {
	for _, c := range []struct {
		want string
		cfg  Config
	}{
		{"LineRate is 0", Config{}},
		{"LineRate is -1", Config{LineRate: -1}},
		{"MinRate is 200000000", Config{LineRate: 100e6, MinRate: 200e6}},
		{"MinRate is -1", Config{LineRate: 1e9, MinRate: -1}},
		{"G is -0.5", Config{LineRate: 1e9, G: -0.5}},
		{"G is NaN", Config{LineRate: 1e9, G: math.NaN()}},
		{"G is 1.5", Config{LineRate: 1e9, G: 1.5}},
		{"AlphaTimer is 1ns", Config{LineRate: 1e9, AlphaTimer: 1}},
		{"IncreaseTimer is -1ns", Config{LineRate: 1e9, IncreaseTimer: -1}},
		{"ByteCounter is -1", Config{LineRate: 1e9, ByteCounter: -1}},
		{"F is -1", Config{LineRate: 1e9, F: -1}},
		{"F is 1001", Config{LineRate: 1e9, F: 1001}},
		{"AI is -1", Config{LineRate: minLine, AI: -1}},
		{"AI is 9999", Config{LineRate: 1e9, AI: 9999}},
		{"HAI is 1000000: want AI to LineRate", Config{LineRate: 1e9, AI: 2e6, HAI: 1e6}},
		{"Burst is -1ns", Config{LineRate: 1e9, Burst: -1}},
		{"CNPInterval is -1ns", Config{LineRate: 1e9, CNPInterval: -1}},
		{"LineRate is 10000000000001", Config{LineRate: maxLine + 1}},
		{"AlphaTimer is 1h0m0.000000001s", Config{LineRate: 1e9, AlphaTimer: maxTimer + 1}},
		{"IncreaseTimer is 1h0m0.000000001s", Config{LineRate: 1e9, IncreaseTimer: maxTimer + 1}},
		{"AI is 1000000001", Config{LineRate: 1e9, AI: 1e9 + 1}},
		{"HAI is 1000000001", Config{LineRate: 1e9, HAI: 1e9 + 1}},
		{"Burst is 1h0m0.000000001s", Config{LineRate: 1e9, Burst: maxTimer + 1}},
		{"CNPInterval is 1h0m0.000000001s", Config{LineRate: 1e9, CNPInterval: maxTimer + 1}},
	} {
		if _, err := NewReactionPoint(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want something about %q", c.cfg, err, c.want)
		}
	}
	for _, line := range []int64{minLine, 1e6, 10e6, 1e9, maxLine} {
		if _, err := NewReactionPoint(Config{LineRate: line}); err != nil {
			t.Errorf("defaults for %d: %v", line, err)
		}
	}
	least := Config{
		LineRate: 1e9, MinRate: 1, G: 1e-9, AlphaTimer: time.Microsecond, IncreaseTimer: time.Microsecond, ByteCounter: 1,
		F: 1, AI: 1e9 / maxSteps, HAI: 1e9 / maxSteps, Burst: 1, CNPInterval: 1,
	}
	greatest := Config{
		LineRate: maxLine, MinRate: maxLine, G: 1, AlphaTimer: maxTimer, IncreaseTimer: maxTimer, ByteCounter: math.MaxInt64,
		F: 1000, AI: maxLine, HAI: maxLine, Burst: maxTimer, CNPInterval: maxTimer,
	}
	for _, c := range []Config{least, greatest} {
		if got, err := c.Complete(); err != nil || got != c {
			t.Errorf("%+v becomes %+v: %v", c, got, err)
		}
	}
	want := Config{
		LineRate: 1e9, MinRate: 1e6, G: 1. / 16, AlphaTimer: 2 * ms, IncreaseTimer: ms, ByteCounter: 1e6 + 1,
		F: 5, AI: 2e6, HAI: 10e6, Burst: 4 * ms, CNPInterval: 50 * time.Microsecond,
	}
	if got, err := (Config{LineRate: 1e9}).Complete(); err != nil || got != want {
		t.Errorf("the defaults are %+v: %v", got, err)
	}
}
