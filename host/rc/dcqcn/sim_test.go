// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dcqcn

import "time"

// frame is the length of a simulated packet: 1024 bytes of payload in a frame.
const frame = 1024 + 58

// link is a simulated path: a sender that always has something to send, a switch
// queue that drains at a rate and marks what finds it above a threshold, and a
// receiver with a notification point.
type link struct {
	rp    ReactionPoint
	np    NotificationPoint
	now   time.Duration
	rate  float64       // bits/s at which the queue drains
	mark  int           // bytes
	delay time.Duration // time from the queue to the receiver, and from there to the sender

	queue   []bool // packets: marked?
	drained time.Duration
	flight  []arrival // packets on the way to the receiver
	cnps    []time.Duration

	delivered int // bytes since measure
	maxQueue  int
	cnpsSent  int
	least     int64 // rates seen
	most      int64
}

type arrival struct {
	at     time.Duration
	marked bool
}

// wakeup is how often the simulated sender looks at the clock: as often as
// host/endpoint/soft does.
const wakeup = 100 * time.Microsecond

func newLink(c Config, rate float64, mark int) (*link, error) {
	rp, err := NewReactionPoint(c)
	if err != nil {
		return nil, err
	}
	return &link{
		rp: rp, np: NewNotificationPoint(rp.Config().CNPInterval), rate: rate, mark: mark, delay: 100 * time.Microsecond,
		least: rp.Rate(0), most: rp.Rate(0),
	}, nil
}

// run lets d pass and returns the share of the link that was used, and the
// longest that the queue was, in bytes.
func (l *link) run(d time.Duration) (used float64, longest int) {
	l.delivered, l.maxQueue = 0, 0
	for end := l.now + d; l.now < end; l.now += wakeup {
		l.step()
	}
	return float64(l.delivered) * 8 / (l.rate * d.Seconds()), l.maxQueue
}

func (l *link) step() {
	for len(l.cnps) > 0 && l.cnps[0] <= l.now {
		l.rp.OnCNP(l.cnps[0])
		l.cnps = l.cnps[1:]
	}
	for l.rp.NextSend(l.now) <= l.now {
		if len(l.queue) == 0 {
			l.drained = max(l.drained, l.now)
		}
		l.queue = append(l.queue, len(l.queue)*frame > l.mark)
		l.rp.OnSent(l.now, frame)
	}
	l.maxQueue = max(l.maxQueue, len(l.queue)*frame)
	each := time.Duration(frame * 8 / l.rate * 1e9)
	for len(l.queue) > 0 && l.drained+each <= l.now+wakeup {
		l.drained += each
		l.flight = append(l.flight, arrival{l.drained + l.delay, l.queue[0]})
		l.queue = l.queue[1:]
	}
	for len(l.flight) > 0 && l.flight[0].at <= l.now+wakeup {
		a := l.flight[0]
		l.flight = l.flight[1:]
		l.delivered += frame
		if a.marked && l.np.OnCE(a.at) {
			l.cnps = append(l.cnps, a.at+l.delay)
			l.cnpsSent++
		}
	}
	r := l.rp.Rate(l.now)
	l.least, l.most = min(l.least, r), max(l.most, r)
}
