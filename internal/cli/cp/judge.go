// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"context"
	"fmt"
	"time"
)

// judgeEvery is how often receivers are judged.
const judgeEvery = 50 * time.Millisecond

// judge takes receivers out of the group whose connection has failed, or that hold up the
// others: their held time exceeds --slow. A receiver is charged only while the sender waits
// for it and for at most half of the group.
func (x *stream) judge(ctx context.Context) {
	tick := time.NewTicker(judgeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		x.mu.Lock()
		holders := 0
		for _, p := range x.parts {
			if !p.out && x.lag(p) >= x.s.o.Window {
				holders++
			}
		}
		few := x.waiting && holders <= x.live()/2
		var leave []*part
		for _, p := range x.parts {
			if p.out {
				continue
			}
			if p.held -= 2 * judgeEvery; few && x.lag(p) >= x.s.o.Window {
				p.held += 3 * judgeEvery
			}
			p.held = max(0, p.held)
			if err := p.failed(); err != nil {
				x.drop(p, err.Error())
				leave = append(leave, p)
			} else if x.s.o.Slow > 0 && p.held > x.s.o.Slow {
				x.drop(p, fmt.Sprintf("it has held up the others for more than %v (--slow)", x.s.o.Slow))
				leave = append(leave, p)
			}
		}
		x.mu.Unlock()
		for _, p := range leave {
			x.remove(ctx, p)
		}
	}
}

// remove has the switch remove a receiver, so that it holds up the others no longer.
func (x *stream) remove(ctx context.Context, p *part) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	_ = x.group.Remove(ctx, p.ip) // fails if the switch has removed it by itself
}
