// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dcqcn

import (
	"time"
)

// frame is the length of a simulated packet: 1024 bytes of payload in a frame.
const frame = 1024 + 58

// link is a simulated path: a sender that always has something to send, a switch
// queue that drains at a rate and marks what finds it above a threshold, and a
// receiver with a notification point.
type link struct {
	rp     ReactionPoint
	np     NotificationPoint
	now    time.Duration
	rate   float64       // bits/s at which the queue drains
	mark   int           // bytes
	delay  time.Duration // from the queue to the receiver, and from there to the sender
	wakeup time.Duration // the sender looks at the clock this often
	window int           // packets that may be unacknowledged; 0: any number

	queue     []bool // marked?
	drained   time.Duration
	flight    []arrival // on the way to the receiver
	acks      []arrival // on the way back; marked: with a CNP
	inFlight  int
	delivered int // bytes
	maxQueue  int // bytes, since last measured
	sumQueue  float64
	steps     int
}

type arrival struct {
	at     time.Duration
	marked bool
}

const step = 20 * time.Microsecond

// run lets d pass and returns the share of the link that was used.
func (l *link) run(d time.Duration) (used float64) {
	l.delivered, l.maxQueue, l.sumQueue, l.steps = 0, 0, 0, 0
	for end := l.now + d; l.now < end; l.now += step {
		l.step()
	}
	return float64(l.delivered) * 8 / (l.rate * d.Seconds())
}

func (l *link) step() {
	for len(l.acks) > 0 && l.acks[0].at <= l.now {
		if l.acks[0].marked {
			l.rp.OnCNP(l.now)
		}
		l.inFlight--
		l.acks = l.acks[1:]
	}
	for len(l.flight) > 0 && l.flight[0].at <= l.now {
		a := l.flight[0]
		l.flight = l.flight[1:]
		l.delivered += frame
		l.acks = append(l.acks, arrival{a.at + l.delay, a.marked && l.np.OnCE(a.at)})
	}
	if l.now%l.wakeup == 0 {
		for (l.window == 0 || l.inFlight < l.window) && l.rp.NextSend(l.now) <= l.now {
			if len(l.queue) == 0 {
				l.drained = max(l.drained, l.now)
			}
			l.queue = append(l.queue, len(l.queue)*frame > l.mark)
			l.inFlight++
			l.rp.OnSent(l.now, frame)
		}
	}
	each := time.Duration(frame * 8 / l.rate * 1e9)
	for len(l.queue) > 0 && l.drained+each <= l.now {
		l.drained += each
		l.flight = append(l.flight, arrival{l.drained + l.delay, l.queue[0]})
		l.queue = l.queue[1:]
	}
	l.maxQueue = max(l.maxQueue, len(l.queue)*frame)
	l.sumQueue += float64(len(l.queue) * frame)
	l.steps++
}
