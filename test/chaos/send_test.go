// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/mcast"
)

const (
	// stuckTime is how long a group may stand still without a reason while nothing is missing in
	// the fabric: what comes back within the grace of a lost neighbour is not reported.
	stuckTime = 5 * time.Second
	// errorTime is how long a source may then wait for its error: its retries.
	errorTime = 5 * time.Second
	// deadAfter is endpoint's default under evict.
	deadAfter = 100 * time.Millisecond
)

// send writes a part of the window from one member to all others, in messages of random sizes, and
// compares the bytes of each message at each member when it is complete.
func (l *life) send(ctx context.Context, from *member, live []*member, at, size int, seed uint64) error {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	random := rand.NewChaCha8(key)
	source := from.mr.Bytes()[at : at+size]
	_, _ = random.Read(source) // it never fails
	rng := rand.New(random)
	var ends []int
	for sum := 0; sum < size; {
		sum = min(size, sum+1+rng.IntN([]int{100, 5000, 70_000}[rng.IntN(3)]))
		ends = append(ends, sum)
	}
	qp, w := from.group.QP(), from.group.Info().Window
	last := time.Now()
	var wcs [depth]endpoint.Completion
	for posted, done := 0, 0; done < len(ends); {
		for ; posted < len(ends) && posted-done < depth; posted++ {
			start := 0
			if posted > 0 {
				start = ends[posted-1]
			}
			wr := endpoint.SendWR{
				ID: uint64(posted), Op: endpoint.Write, RemoteAddr: w.Base + uint64(at+start), RKey: w.RKey,
				Local: endpoint.Segment{MR: from.mr, Offset: at + start, Len: ends[posted] - start},
			}
			if _, err := qp.PostSend(wr); err != nil {
				return fmt.Errorf("source %s: %w", from.Name, err)
			}
		}
		n, err := l.poll(ctx, from, wcs[:])
		if err != nil {
			return fmt.Errorf("source %s, %d of %d messages complete, %v after the last one: %w", from.Name, done, len(ends), time.Since(last).Round(time.Millisecond), err)
		}
		last = time.Now()
		for _, c := range wcs[:n] {
			if err := c.Err(); err != nil {
				return fmt.Errorf("source %s, message %d of %d: %w", from.Name, c.ID, len(ends), err)
			}
			if c.ID != uint64(done) {
				l.r.wrong("%s: source %s: a completion of message %d, want %d", l.name, from.Name, c.ID, done)
				return errors.New("completions are out of order")
			}
			start := 0
			if done > 0 {
				start = ends[done-1]
			}
			if err := l.compare(from, live, at+start, at+ends[done], done); err != nil {
				return err
			}
			done++
		}
	}
	return l.compare(from, live, at, at+size, len(ends))
}

// compare looks for the bytes of a complete message at all members that are in the group.
func (l *life) compare(from *member, live []*member, start, end, message int) error {
	want := from.mr.Bytes()[start:end]
	for _, m := range live {
		if m == from || bytes.Equal(m.mr.Bytes()[start:end], want) || l.evicted(m) {
			continue
		}
		l.r.wrong("%s: FALSE COMPLETION: message %d of %s is complete, and %s lacks bytes of [%d, %d)", l.name, message, from.Name, m.Name, start, end)
		return errors.New("a false completion")
	}
	return nil
}

// poll waits for completions. After stuckTime without any there must be a reason.
func (l *life) poll(ctx context.Context, from *member, wcs []endpoint.Completion) (int, error) {
	ctx = context.WithoutCancel(ctx) // a transfer that has begun ends
	stood := time.Now()
	for seen := false; ; {
		wait, cancel := context.WithTimeout(ctx, stuckTime/2)
		n, err := from.group.QP().Poll(wait, wcs)
		cancel()
		if n > 0 {
			l.r.completed(n, l.stall(from, stood))
		}
		if n > 0 || !errors.Is(err, context.DeadlineExceeded) {
			return n, err
		}
		if !seen {
			seen = true
			l.r.picture(l.ip)
		}
		if l.stall(from, stood) >= stuckTime {
			break
		}
	}
	why := l.reason(stood.Add(-time.Second)) // journals are not polled at once
	if why == "" && l.policy == mcast.Evict && len(l.r.top.Switches) > 1 && l.alone(from) {
		why = "all receivers were killed (docs/LIMITS.md)"
	}
	l.r.note("%s: source %s has stood still for %v: %s", l.name, from.Name, time.Since(stood).Round(time.Millisecond), why)
	if why == "" {
		l.r.wrong("%s: source %s has had no completion for %v, and nothing says why", l.name, from.Name, stuckTime)
	}
	l.r.count("standstills")
	wait, cancel := context.WithTimeout(ctx, errorTime)
	defer cancel()
	return from.group.QP().Poll(wait, wcs)
}

// stall is for how long a source has stood still since a time, without the time in which something was missing, and that after
// which the switch takes a member for dead whose programs were killed: under strict, and where no receiver is alive, 10 s.
func (l *life) stall(from *member, since time.Time) time.Duration {
	l.r.mu.Lock()
	killed := l.killed
	l.r.mu.Unlock()
	d := time.Since(since) - l.r.brokenSince(since)
	if !killed.IsZero() {
		silence := deadAfter
		if l.policy == mcast.Strict || l.alone(from) {
			silence = mcast.StrictDeadAfter
		}
		d = min(d, time.Since(killed), l.r.wholeFor()) - silence // a switch that has started begins to count
	}
	return max(0, d)
}

// alone reports whether no receiver of a source is alive, or none at the root, which removes its own alone (R108). The
// group was registered at the switch of its first member.
func (l *life) alone(from *member) bool {
	root, live := l.members[0].Switch, l.live()
	return !slices.ContainsFunc(live, func(m *member) bool { return m != from }) ||
		from.Switch != root && !slices.ContainsFunc(live, func(m *member) bool { return m.Switch == root })
}

// reason is what the master was told, or a switch's journal has said, about the end of the group or of
// a member, since a time; "": nothing.
func (l *life) reason(since time.Time) string {
	if l.over() {
		return "the master knows that the group has ended"
	}
	return l.r.why(l.ip, since)
}
