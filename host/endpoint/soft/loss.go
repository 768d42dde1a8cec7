// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"fmt"
	"math/rand/v2"
)

// LossModel determines which of the frames on the way to a device are lost. The zero
// value loses none.
//
// With Burst 0 every frame is lost with probability Rate, independently of the frame
// before. Otherwise losses come in bursts, after E. N. Gilbert, "Capacity of a
// Burst-Noise Channel" (1960): the channel is good, and loses nothing, or bad, and loses
// everything. It stays bad for Burst frames on average (geometrically distributed), and
// good for a time such that Rate of all frames are lost. So Burst 1 never loses two in a
// row.
type LossModel struct {
	Rate  float64 // average share of frames that are lost, 0 to MaxLossRate
	Burst float64 // mean length of a burst in frames, 1 to MaxLossBurst; 0: no bursts
	Seed  uint64  // equal seeds lose equal frames, counted from SetInboundLoss
}

// Bounds of a LossModel.
const (
	MaxLossRate  = 0.5
	MaxLossBurst = 1e6
)

func (m LossModel) check() error {
	switch {
	case !(m.Rate >= 0 && m.Rate <= MaxLossRate): // false for NaN
		return fmt.Errorf("loss rate %v: want 0 to %v", m.Rate, MaxLossRate)
	case m.Burst != 0 && !(m.Burst >= 1 && m.Burst <= MaxLossBurst):
		return fmt.Errorf("mean burst of %v lost frames: want 1 to %g, or 0 for losses that are independent", m.Burst, MaxLossBurst)
	}
	return nil
}

// lossProcess is a running LossModel. The zero value loses nothing.
type lossProcess struct {
	rng     *rand.Rand // nil: nothing is lost
	toBad   float64    // probability that a frame is lost after one that was not
	stayBad float64    // probability that a frame is lost after one that was
	bad     bool       // the frame before was lost
}

// newLossProcess returns the process of a model that check accepts.
func newLossProcess(m LossModel) lossProcess {
	if m.Rate == 0 {
		return lossProcess{}
	}
	l := lossProcess{rng: rand.New(rand.NewPCG(m.Seed, 3)), toBad: m.Rate, stayBad: m.Rate}
	if m.Burst != 0 {
		leave := 1 / m.Burst
		// In the long run as many bursts begin as end: (1-Rate)*enter = Rate*leave.
		l.toBad, l.stayBad = leave*m.Rate/(1-m.Rate), 1-leave
	}
	return l
}

// drop reports whether the next frame is lost.
func (l *lossProcess) drop() bool {
	if l.rng == nil {
		return false
	}
	p := l.toBad
	if l.bad {
		p = l.stayBad
	}
	l.bad = l.rng.Float64() < p
	return l.bad
}

// SetInboundLoss makes the device lose received frames, and none that it sends, until the
// next call: as if the last link to the host were lossy in that direction. Config.Loss
// applies in addition. Stats count such frames as RxLoss.
func (d *Device) SetInboundLoss(m LossModel) error {
	if err := m.check(); err != nil {
		return fmt.Errorf("device on %s: %w", d.cfg.Interface, err)
	}
	return d.do(func() { d.loop.inbound = newLossProcess(m) })
}
