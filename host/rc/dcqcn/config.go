// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dcqcn

import (
	"errors"
	"fmt"
	"time"
)

// Config describes a reaction point, and the notification point beside it. The
// zero value of everything but LineRate takes the default in brackets. Rates
// are in bits/s, of whatever bytes OnSent is told about.
type Config struct {
	LineRate int64 // the rate before the first CNP, and the most there ever is
	MinRate  int64 // the least [LineRate/1000, at least 1 Mbit/s, at most LineRate]

	// G is the gain of alpha, the estimate of how congested the path is: a CNP
	// makes it (1-G)·alpha+G, each AlphaTimer without one (1-G)·alpha. [1/16;
	// the paper has 1/256, with a timer of 55 µs]
	G float64
	// AlphaTimer is also the least time between two cuts of the rate. [2 ms]
	AlphaTimer time.Duration

	IncreaseTimer time.Duration // time between two rises of the rate [1 ms]
	ByteCounter   int64         // bytes between two rises, beside the timer's [what LineRate carries in 8 IncreaseTimers]
	F             int           // rises of one kind before fast recovery ends [5]
	AI            int64         // additive increase of the target rate [LineRate/500]
	HAI           int64         // hyper increase [LineRate/100]

	// Burst bounds what a sender that was held up may send at once to make up for
	// it: the bytes of that time at the current rate. It has to be longer than a
	// sleep overshoots, or the rate is not reached. [4 ms]
	Burst time.Duration

	CNPInterval time.Duration // NP: least time between two CNPs [50 µs]
}

func orDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// Complete returns c with its defaults filled in, or all that is wrong with it.
func (c Config) Complete() (Config, error) {
	orDefault(&c.MinRate, min(max(c.LineRate/1000, 1e6), c.LineRate))
	orDefault(&c.G, 1./16)
	orDefault(&c.AlphaTimer, 2*time.Millisecond)
	orDefault(&c.IncreaseTimer, time.Millisecond)
	orDefault(&c.ByteCounter, int64(float64(c.LineRate)/8*8*c.IncreaseTimer.Seconds())+1)
	orDefault(&c.F, 5)
	orDefault(&c.AI, max(c.LineRate/500, 1))
	orDefault(&c.HAI, max(c.LineRate/100, 1))
	orDefault(&c.Burst, 4*time.Millisecond)
	orDefault(&c.CNPInterval, 50*time.Microsecond)

	var errs []error
	bad := func(field string, got any, want string) {
		errs = append(errs, fmt.Errorf("dcqcn: %s is %v: want %s", field, got, want))
	}
	if c.LineRate < minLine || c.LineRate > maxLine {
		bad("LineRate", c.LineRate, "8 kbit/s to 10 Tbit/s, in bits/s")
	}
	if c.MinRate < 1 || c.MinRate > c.LineRate {
		bad("MinRate", c.MinRate, "1 bit/s to LineRate")
	}
	if !(c.G > 0 && c.G <= 1) { // NaN too
		bad("G", c.G, "above 0, at most 1")
	}
	if c.AlphaTimer < time.Microsecond || c.AlphaTimer > maxTimer {
		bad("AlphaTimer", c.AlphaTimer, "1 µs to 1 h")
	}
	if c.IncreaseTimer < time.Microsecond || c.IncreaseTimer > maxTimer {
		bad("IncreaseTimer", c.IncreaseTimer, "1 µs to 1 h")
	}
	if c.ByteCounter < 1 {
		bad("ByteCounter", c.ByteCounter, "1 byte or more")
	}
	if c.F < 1 || c.F > 1000 {
		bad("F", c.F, "1 to 1000")
	}
	// Below that, making up for a long pause would take long too.
	if c.AI < c.LineRate/maxSteps || c.AI > c.LineRate {
		bad("AI", c.AI, fmt.Sprintf("LineRate/%d to LineRate, in bits/s", int(maxSteps)))
	}
	if c.HAI < c.AI || c.HAI > c.LineRate {
		bad("HAI", c.HAI, "AI to LineRate, in bits/s")
	}
	if c.Burst < 0 || c.Burst > maxTimer {
		bad("Burst", c.Burst, "0 to 1 h")
	}
	if c.CNPInterval < 0 || c.CNPInterval > maxTimer {
		bad("CNPInterval", c.CNPInterval, "0 to 1 h")
	}
	if len(errs) > 0 {
		return Config{}, errors.Join(errs...)
	}
	return c, nil
}

// Bounds of a Config.
const (
	minLine  = 8_000
	maxLine  = 10_000_000_000_000
	maxTimer = time.Hour
	maxSteps = 100_000 // number of steps of additive increase, from nothing to LineRate
)
