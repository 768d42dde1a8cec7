// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/gleam-rdma/gleam/api"
	"github.com/gleam-rdma/gleam/host/endpoint"
)

// Random returns bytes that follow from a seed. Reading them never fails.
func Random(seed uint64) *rand.ChaCha8 {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return rand.NewChaCha8(key)
}

// Messages cuts a part of a region into messages.
type Messages struct {
	Op      endpoint.WROp
	Offset  int64 // the offset of the part
	Len     int64 // the length of the part
	Message int64 // bytes of each message but the last
}

// Writes are WRITEs of a whole region.
func Writes(mr endpoint.MR, message int) *Messages {
	return &Messages{Op: endpoint.Write, Len: int64(mr.Len()), Message: int64(message)}
}

// Count returns the number of messages.
func (m *Messages) Count() int { return int((m.Len + m.Message - 1) / m.Message) }

// Segment returns message i in a region.
func (m *Messages) Segment(mr endpoint.MR, i int) endpoint.Segment {
	at := int64(i) * m.Message
	return endpoint.Segment{MR: mr, Offset: int(m.Offset + at), Len: int(min(m.Message, m.Len-at))}
}

// Send sends all messages from a region, depth at a time, and returns when the last is complete. WRITEs
// go to the same place from an address on. done, unless it is nil, is called for each completion.
func (m *Messages) Send(ctx context.Context, qp endpoint.QP, mr endpoint.MR, to uint64, rkey uint32, depth int, done func(bytes int)) error {
	return Send(ctx, qp, m.Count(), depth, func(i int) (endpoint.SendWR, error) {
		wr := endpoint.SendWR{Op: m.Op, Local: m.Segment(mr, i), Imm: uint32(i)}
		if m.Op != endpoint.Send {
			wr.RemoteAddr, wr.RKey = to+uint64(wr.Local.Offset), rkey
		}
		return wr, nil
	}, func(i int) error {
		if done != nil {
			done(m.Segment(mr, i).Len)
		}
		return nil
	})
}

// SendToGroup is Send from a member's region to its group. WRITEs go to the group's window.
func (m *Messages) SendToGroup(ctx context.Context, g *endpoint.Group, mr endpoint.MR, depth int, done func(bytes int)) error {
	w := g.Info().Window
	return m.Send(ctx, g.QP(), mr, w.Base, w.RKey, depth, done)
}

// Send posts n requests, depth at a time, and waits for their completions, which must be without error and in
// order. next makes request i; done hears of its completion.
func Send(ctx context.Context, qp endpoint.QP, n, depth int, next func(i int) (endpoint.SendWR, error), done func(i int) error) error {
	wc := make([]endpoint.Completion, depth)
	for posted, completed := 0, 0; completed < n; {
		for ; posted < n && posted-completed < depth; posted++ {
			wr, err := next(posted)
			if err != nil {
				return err
			}
			wr.ID = uint64(posted)
			if _, err := qp.PostSend(wr); err != nil {
				return fmt.Errorf("post message %d: %w", posted, err)
			}
		}
		k, err := qp.Poll(ctx, wc)
		if err != nil {
			return fmt.Errorf("wait for message %d of %d: %w", completed, n, err)
		}
		for _, c := range wc[:k] {
			if err := c.Err(); err != nil {
				return fmt.Errorf("message %d of %d: %w", c.ID, n, err)
			}
			if c.ID != uint64(completed) {
				return fmt.Errorf("completion of message %d while that of %d was due", c.ID, completed)
			}
			if err := done(completed); err != nil {
				return err
			}
			completed++
		}
	}
	return nil
}

// Repeat writes a region to a group again and again. It returns nil when ctx ends, or the first error.
func Repeat(ctx context.Context, g *endpoint.Group, mr endpoint.MR) error {
	for {
		err := Writes(mr, mr.Len()).SendToGroup(ctx, g, mr, 1, nil)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Explain adds to the error of a transfer whom the switch has the group wait for.
func Explain(c *api.Client, group netip.Addr, err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if g, gerr := c.Group(ctx, group); gerr == nil && g.WaitsFor.IsValid() {
		err = fmt.Errorf("%w\nthe group's ACK waits for %s (state %s, acknowledged up to 0x%06x, next 0x%06x)", err, g.WaitsFor, g.State, g.AckPSN, g.NextPSN)
	}
	return err
}
