// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/soft"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

const (
	// pourSize is the bytes of a message: 40 packets, so that a full send window, which
	// a pause of a thread on a busy machine empties at once, seldom ends with a message.
	pourSize = 40_000
	// pourDepth is how many messages are posted at a time, each with a slot of its own.
	pourDepth = 32
)

// pouring is a member that sends without a pause: it always has packets in flight. At
// each completion all others must have the bytes.
type pouring struct {
	r     *rig
	from  int
	done  atomic.Int64  // messages
	early atomic.Int64  // completions without the bytes at every other member
	most  time.Duration // the longest time between two completions
	err   error
	ended chan struct{}
}

// pour has host from send until ctx ends, into its own part of the window.
func (r *rig) pour(ctx context.Context, from int) *pouring {
	p := &pouring{r: r, from: from, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.err = p.run(ctx)
	}()
	return p
}

func (p *pouring) run(ctx context.Context) error {
	h := p.r.hosts[p.from]
	at := func(seq int) int { return (p.from*pourDepth + seq%pourDepth) * pourSize }
	var wc [pourDepth]endpoint.Completion
	last := time.Now()
	for next, done := 0, 0; ctx.Err() == nil || done < next; {
		for ; ctx.Err() == nil && next < done+pourDepth; next++ {
			b := h.mr.Bytes()[at(next):][:pourSize]
			for i := 0; i < pourSize; i += 8 {
				binary.LittleEndian.PutUint64(b[i:], uint64(p.from)<<56+uint64(next)<<20+uint64(i))
			}
			if _, err := h.qp.PostSend(endpoint.SendWR{
				ID: uint64(next), Op: endpoint.Write, RemoteAddr: groupBase + uint64(at(next)), RKey: groupRKey,
				Local: endpoint.Segment{MR: h.mr, Offset: at(next), Len: pourSize},
			}); err != nil {
				return err
			}
		}
		n, err := h.qp.Poll(p.r.ctx, wc[:])
		if err != nil {
			return err
		}
		for _, c := range wc[:n] {
			if err := c.Err(); err != nil {
				return err
			}
			for _, o := range p.r.hosts {
				if !bytes.Equal(o.mr.Bytes()[at(done):][:pourSize], h.mr.Bytes()[at(done):][:pourSize]) {
					p.early.Add(1)
				}
			}
			done++
		}
		p.most = max(p.most, time.Since(last))
		last = time.Now()
		p.done.Store(int64(done))
	}
	return nil
}

// end waits for a member that pours to come to its end.
func (p *pouring) end(t *testing.T) {
	t.Helper()
	<-p.ended
	if p.err != nil || p.early.Load() > 0 {
		t.Errorf("host %d after %d messages: %v, %d completions without the bytes", p.from, p.done.Load(), p.err, p.early.Load())
	}
}

// TestFairTurns: members that never pause share a group as sources. Each has its share
// of the time (R77). The cost of a change of the source is measured without a network,
// in mcast: here all share the processors.
func TestFairTurns(t *testing.T) {
	for name, c := range map[string]struct {
		loss    float64
		sources int
	}{"two": {0, 2}, "three": {0, 3}, "two with loss": {0.002, 2}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 4}, memory: 4 << 20, device: func(_ int, d *soft.Config) { d.Loss = c.loss }})
			r.join()
			measure := func(sources int, d time.Duration) (rate float64, shares []float64) {
				ctx, cancel := context.WithTimeout(r.ctx, d)
				defer cancel()
				var ps []*pouring
				for i := range sources {
					ps = append(ps, r.pour(ctx, i))
				}
				<-ctx.Done()
				sum := 0.0
				for _, p := range ps {
					shares = append(shares, float64(p.done.Load()))
					sum += float64(p.done.Load())
				}
				for i, p := range ps {
					p.end(t)
					shares[i] /= sum
					t.Logf("host %d of %d: %.0f %%, at most %v between two completions", i, sources, 100*shares[i], p.most.Round(time.Millisecond))
				}
				return sum * pourSize * 8 / d.Seconds() / 1e6, shares
			}
			before, _ := measure(1, 500*time.Millisecond)
			machine := labtest.Watch()
			both, shares := measure(c.sources, 2*time.Second)
			t.Logf("alone %.0f Mbit/s, %d together %.0f Mbit/s", before, c.sources, both)
			for i, s := range shares {
				if s < 0.5/float64(c.sources) {
					machine.Timing(t, "host %d sent %.0f %% of all", i, 100*s)
				}
			}
		})
	}
}
