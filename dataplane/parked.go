// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"time"

	"github.com/gleam-rdma/gleam/envelope"
)

// What waits for a neighbour entry: the first answer to a host would otherwise
// be lost, and its sender repeat itself for it.
const (
	parkRoom = 64                    // datagrams
	parkTime = time.Second           // then the entry is given up
	parkPoll = 20 * time.Millisecond // between two looks
)

// parking holds datagrams whose receivers the kernel is resolving, in the order
// in which they came. It has no clock.
type parking struct {
	waiting []parked
	look    time.Duration // when to look again
}

type parked struct {
	packet envelope.Packet
	until  time.Duration
}

// add takes p, or reports that there is no room.
func (k *parking) add(now time.Duration, p *envelope.Packet) bool {
	if len(k.waiting) >= parkRoom {
		return false
	}
	if len(k.waiting) == 0 {
		k.look = now + parkPoll
	}
	k.waiting = append(k.waiting, parked{*p, now + parkTime})
	return true
}

// next returns when retry has something to do.
func (k *parking) next() (at time.Duration, ok bool) { return k.look, len(k.waiting) > 0 }

// retry offers what waits to send, which reports whether the receiver is still
// being resolved. lost is called for what has waited too long.
func (k *parking) retry(now time.Duration, send func(*envelope.Packet) (pending bool), lost func()) {
	if len(k.waiting) == 0 || now < k.look {
		return
	}
	keep := k.waiting[:0]
	for _, x := range k.waiting {
		switch {
		case !send(&x.packet):
		case now >= x.until:
			lost()
		default:
			keep = append(keep, x)
		}
	}
	clear(k.waiting[len(keep):]) // their bytes
	k.waiting, k.look = keep, now+parkPoll
}
