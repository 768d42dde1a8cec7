// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

const (
	// contendTimeout and contendRetries let a queue pair without answers fail. A shorter timeout
	// is one that emulation on a busy machine exceeds: with 67 ms the member that waits failed.
	contendTimeout = 17 // 537 ms
	contendRetries = 3
	contendTime    = 3 * time.Second
	contendDepth   = 16
	contendSize    = 20000
)

// contend has a member send without a pause, and another one post a message meanwhile:
// it is told to wait by an RNR NAK, has its turn while the first one still sends, and must not fail.
func contend(ctx context.Context, b *bench) error {
	spec := groupSpec{number: 1, hosts: b.hosts[:4], mtu: 1024, timeout: contendTimeout, retries: contendRetries}
	return withGroup(ctx, &spec, func(g *group) error {
		var msgs []message
		for range contendDepth {
			msgs = append(msgs, message{endpoint.Write, contendSize})
		}
		bt, err := g.newBatch(msgs...)
		if err != nil {
			return err
		}
		busy, waits := g.members[0], g.members[1]
		if err := bt.post(); err != nil {
			return err
		}
		own := endpoint.SendWR{
			ID: 1, Op: endpoint.Write, RemoteAddr: windowBase + memory/2, RKey: g.rkey,
			Local: endpoint.Segment{MR: waits.mr, Offset: memory / 2, Len: contendSize},
		}
		for i := range waits.mr.Bytes()[memory/2 : memory/2+contendSize] {
			waits.mr.Bytes()[memory/2+i] = byte(i * 7)
		}
		told := rxeCounter(waits.host, receivedRNR)
		begin, posted, n := time.Now(), time.Time{}, 0
		var wcs [1]endpoint.Completion
		// Without the member that waits, whose queue pair receives as well, the busy source would
		// wait for ever.
		ctx, fail := context.WithCancelCause(ctx)
		defer fail(nil)
		done := make(chan ended, 1)
		for n < contendDepth || time.Since(begin) < contendTime {
			if _, err := busy.qp.Poll(ctx, wcs[:]); err != nil {
				return fmt.Errorf("the busy source after %d messages: %w", n, err)
			}
			if err := wcs[0].Err(); err != nil {
				return fmt.Errorf("the busy source after %d messages: %w", n, err)
			}
			if n++; n == 2*contendDepth {
				if _, err := waits.qp.PostSend(own); err != nil {
					return err
				}
				posted = time.Now()
				go func() {
					end := waits.ended(ctx)
					if end.err != nil {
						fail(fmt.Errorf("the waiting source, after %v: %w", end.at.Sub(posted).Round(time.Millisecond), end.err))
					}
					done <- end
				}()
			}
			if time.Since(begin) < contendTime {
				i := n % contendDepth
				wr := endpoint.SendWR{
					ID: uint64(i), Op: endpoint.Write, RemoteAddr: windowBase + uint64(bt.at[i]), RKey: g.rkey,
					Local: endpoint.Segment{MR: busy.mr, Offset: bt.at[i], Len: contendSize},
				}
				if _, err := busy.qp.PostSend(wr); err != nil {
					return err
				}
			}
		}
		took := time.Since(begin)
		for range contendDepth - 1 {
			if _, err := busy.qp.Poll(ctx, wcs[:]); err != nil {
				return fmt.Errorf("the busy source's last messages: %w", err)
			}
		}
		end := <-done
		if end.err != nil {
			return context.Cause(ctx)
		}
		if rxeCounter(waits.host, receivedRNR) == told {
			return errors.New("the waiting source was not told to wait: it has received no RNR NAK")
		}
		b.note("the busy source: %d messages in %v; the one that waits: complete after %v",
			n, took.Round(time.Millisecond), end.at.Sub(posted).Round(time.Millisecond))
		want := waits.mr.Bytes()[memory/2 : memory/2+contendSize]
		for _, m := range g.members {
			if m != waits && difference(want, m.mr.Bytes()[memory/2:memory/2+contendSize]) >= 0 {
				return wrongBytes{fmt.Errorf("host %d does not have the bytes of the source that waited", m.index)}
			}
		}
		return nil
	})
}

// ended is the time and the status of a queue pair's next completion.
type ended struct {
	at  time.Time
	err error
}

func (mb *member) ended(ctx context.Context) ended {
	var wcs [1]endpoint.Completion
	_, err := mb.qp.Poll(ctx, wcs[:])
	if err == nil {
		err = wcs[0].Err()
	}
	return ended{at: time.Now(), err: err}
}
