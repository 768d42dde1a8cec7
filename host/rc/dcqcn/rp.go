// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dcqcn

import (
	"math"
	"time"
)

// ReactionPoint is the sender's half: a rate, lowered by CNPs and raised by time
// and bytes sent, and a pacer. Make one with NewReactionPoint. It belongs to one
// goroutine.
type ReactionPoint struct {
	cfg   Config `state:"constant"`
	stats Stats  `state:"ignored"`

	current float64 `state:"encoded"` // R_C, bits/s
	target  float64 `state:"encoded"` // R_T, bits/s: what the rate was, and then some
	alpha   float64 `state:"encoded"` // 0..1

	belowLineRate bool          `state:"encoded"`         // below the line rate: the timers run
	cutUntil      time.Duration `state:"time"`            // CNPs before this count with the last cut
	next          time.Duration `state:"time"`            // the timer's next rise
	sent          int64         `state:"encoded"`         // bytes since the byte counter's last rise
	timerRises    int           `state:"encoded"`         // T: since the last cut
	byteRises     int           `state:"encoded"`         // BC: likewise
	credit        float64       `state:"encoded"`         // bytes that may be sent; at most one packet below 0, until the rate falls
	creditUntil   time.Duration `state:"derived = c.Now"` // the time that credit stands for
}

// Stats count what a reaction point did. All only grow.
type Stats struct {
	CNPs uint64 // taken
	Cuts uint64 // cuts of the rate; the other CNPs came within AlphaTimer of one
}

// NewReactionPoint returns a reaction point at line rate, or all that is wrong
// with c.
func NewReactionPoint(c Config) (ReactionPoint, error) {
	c, err := c.Complete()
	if err != nil {
		return ReactionPoint{}, err
	}
	return ReactionPoint{cfg: c, current: float64(c.LineRate), target: float64(c.LineRate), alpha: 1}, nil
}

// Config returns the configuration with its defaults filled in.
func (r *ReactionPoint) Config() Config { return r.cfg }

// Stats returns a copy of the counters.
func (r *ReactionPoint) Stats() Stats { return r.stats }

// Rate returns the current rate in bits/s.
func (r *ReactionPoint) Rate(now time.Duration) int64 {
	r.catchUp(now)
	return int64(r.current)
}

// NextSend returns when a packet of any size may be sent: now, or later.
func (r *ReactionPoint) NextSend(now time.Duration) time.Duration {
	r.catchUp(now)
	if r.credit >= 0 {
		return now
	}
	return now + max(1, time.Duration(math.Ceil(-r.credit*8e9/r.current)))
}

// OnSent is told of every packet sent, of n bytes.
func (r *ReactionPoint) OnSent(now time.Duration, n int) {
	r.catchUp(now)
	r.credit -= float64(n)
	if !r.belowLineRate {
		return
	}
	for r.sent += int64(n); r.belowLineRate && r.sent >= r.cfg.ByteCounter; r.sent -= r.cfg.ByteCounter {
		r.byteRises++
		r.rise()
	}
}

// OnCNP is told of every CNP, and every ACK with BECN. It cuts the rate (the
// paper's equation 1), unless it has done so within AlphaTimer.
func (r *ReactionPoint) OnCNP(now time.Duration) {
	r.catchUp(now)
	r.stats.CNPs++
	if now < r.cutUntil {
		return
	}
	r.stats.Cuts++
	r.decay(now)
	r.target = r.current
	r.current = max(r.current*(1-r.alpha/2), float64(r.cfg.MinRate))
	r.alpha = (1-r.cfg.G)*r.alpha + r.cfg.G
	r.cutUntil = now + r.cfg.AlphaTimer
	r.next = now + r.cfg.IncreaseTimer
	r.sent, r.timerRises, r.byteRises = 0, 0, 0
	r.belowLineRate = true
}

// decay makes up for the AlphaTimers without a CNP since the window of the last
// cut has ended (the paper's equation 2). At line rate nothing is known of the
// path: alpha is 1 again, as in NICs, which give the rate limiter back then.
func (r *ReactionPoint) decay(now time.Duration) {
	if !r.belowLineRate {
		r.alpha = 1
		return
	}
	if quiet := (now - r.cutUntil) / r.cfg.AlphaTimer; quiet > 0 {
		r.alpha *= math.Pow(1-r.cfg.G, float64(quiet))
	}
}

// catchUp does what the timer would have done until now.
func (r *ReactionPoint) catchUp(now time.Duration) {
	for r.belowLineRate && r.next <= now {
		r.fill(r.next)
		r.next += r.cfg.IncreaseTimer
		r.timerRises++
		r.rise()
	}
	r.fill(now)
}

// fill adds the credit that the time until t is worth at the current rate.
func (r *ReactionPoint) fill(t time.Duration) {
	if t <= r.creditUntil {
		return
	}
	r.credit += r.current / 8e9 * float64(t-r.creditUntil)
	r.credit = min(r.credit, r.current/8e9*float64(r.cfg.Burst))
	r.creditUntil = t
}

// rise raises the rate by one step: the paper's figure 7 and equations 3 and 4.
// The step halves the way to the target, which itself moves on after fast
// recovery.
func (r *ReactionPoint) rise() {
	line := float64(r.cfg.LineRate)
	switch low, high := min(r.timerRises, r.byteRises), max(r.timerRises, r.byteRises); {
	case high < r.cfg.F: // fast recovery
	case low > r.cfg.F: // hyper increase
		r.target += float64(r.cfg.HAI)
	default: // additive increase
		r.target += float64(r.cfg.AI)
	}
	r.target = min(r.target, line)
	r.current = (r.current + r.target) / 2
	if line-r.current < line/lineSlack {
		r.current, r.target, r.belowLineRate = line, line, false
	}
}

// lineSlack: a rate that is nearer to the line rate than this part of it is the
// line rate, which would otherwise only be approached.
const lineSlack = 1000
