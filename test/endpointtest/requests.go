// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpointtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// write is a WRITE of n bytes from the beginning of p.send to addr.
func (p *pair) write(id uint64, n int, addr uint64, rkey uint32) endpoint.SendWR {
	return endpoint.SendWR{
		ID: id, Op: endpoint.Write, Local: endpoint.Segment{MR: p.send, Len: n}, RemoteAddr: addr, RKey: rkey,
	}
}

// fails sends a good request, a bad one and a good one: the first must succeed,
// the second have the status, the third be flushed, and the receiver's memory be
// as the first left it.
func fails(ctx context.Context, p *pair, good, bad endpoint.SendWR, want endpoint.Status) error {
	good.ID, bad.ID = 1, 2
	after := good
	after.ID = 3
	if _, err := p.qp[0].PostSend(good, bad, after); err != nil {
		return err
	}
	if _, err := one(ctx, p.qp[0], 1, endpoint.Success); err != nil {
		return err
	}
	c, err := one(ctx, p.qp[0], 2, want)
	if err != nil {
		return err
	}
	if c.Err() == nil {
		return errors.New("a failed completion has no error")
	}
	if _, err := one(ctx, p.qp[0], 3, endpoint.WRFlushErr); err != nil {
		return err
	}
	for i, b := range p.recv.Bytes()[good.Local.Len:] {
		if b != 0 {
			return fmt.Errorf("byte %d was written", good.Local.Len+i)
		}
	}
	return p.close()
}

func wrongRKey(ctx context.Context, cfg Config) error {
	p, err := connect(ctx, cfg, 4*cfg.PathMTU, endpoint.RandomPSN())
	if err != nil {
		return err
	}
	fill(p.send.Bytes(), 1)
	va, key := p.recv.Addr(), p.recv.RKey()
	return fails(ctx, p, p.write(0, 9, va, key), p.write(0, 2*cfg.PathMTU, va, key^0x5a00), endpoint.RemoteAccessErr)
}

func writePastRegion(ctx context.Context, cfg Config) error {
	p, err := connect(ctx, cfg, 4*cfg.PathMTU, endpoint.RandomPSN())
	if err != nil {
		return err
	}
	fill(p.send.Bytes(), 1)
	va, key := p.recv.Addr(), p.recv.RKey()
	return fails(ctx, p, p.write(0, 9, va, key), p.write(0, 2, va+uint64(p.recv.Len()-1), key), endpoint.RemoteAccessErr)
}

// noRemoteWrite sends to a region that peers may not write to.
func noRemoteWrite(ctx context.Context, cfg Config) error {
	p, err := connect(ctx, cfg, cfg.PathMTU, endpoint.RandomPSN())
	if err != nil {
		return err
	}
	fill(p.send.Bytes(), 1)
	m, err := p.register(cfg, 1, cfg.PathMTU, 0, endpoint.LocalWrite)
	if err != nil {
		return err
	}
	good := p.write(0, 9, p.recv.Addr(), p.recv.RKey())
	return fails(ctx, p, good, p.write(0, 9, m.Addr(), m.RKey()), endpoint.RemoteAccessErr)
}

// receiveTooShort sends more than the receive has room for.
func receiveTooShort(ctx context.Context, cfg Config) error {
	p, err := connect(ctx, cfg, 4*cfg.PathMTU, endpoint.RandomPSN())
	if err != nil {
		return err
	}
	if _, err := p.qp[1].PostRecv(endpoint.RecvWR{ID: 7, Local: endpoint.Segment{MR: p.recv, Len: 8}}); err != nil {
		return err
	}
	if _, err := p.qp[0].PostSend(endpoint.SendWR{ID: 1, Op: endpoint.Send, Local: endpoint.Segment{MR: p.send, Len: 9}}); err != nil {
		return err
	}
	sent, err := next(ctx, p.qp[0], 1)
	if err != nil {
		return err
	}
	if c := sent[0]; c.ID != 1 || c.Status != endpoint.RemoteInvalidReq && c.Status != endpoint.RemoteOpErr {
		return fmt.Errorf("completion %+v of a message longer than the receive", c)
	}
	all, err := next(ctx, p.qp[1], 1)
	if err != nil {
		return err
	}
	// The specification has remote invalid request and local length error. Linux's
	// soft-RoCE takes the receive for malformed: 11 and 2 (6.12, rxe_resp.c).
	if c := all[0]; c.ID != 7 || !slices.Contains([]endpoint.Status{endpoint.LocalLengthErr, endpoint.LocalQPOpErr, endpoint.RemoteInvalidReq}, c.Status) {
		return fmt.Errorf("completion %+v of a receive that was too short", c)
	}
	return p.close()
}

// queueFull posts more than the queues hold, and then what they hold again.
func queueFull(ctx context.Context, cfg Config) error {
	cfg.QP.MaxSend, cfg.QP.MaxRecv = 40, 50
	p, err := connect(ctx, cfg, 4096, endpoint.RandomPSN())
	if err != nil {
		return err
	}
	sends := make([]endpoint.SendWR, 41)
	for i := range sends {
		sends[i] = p.write(uint64(i), 1, p.recv.Addr(), p.recv.RKey())
	}
	for range 2 {
		if n, err := p.qp[0].PostSend(sends...); n != 40 || !errors.Is(err, endpoint.ErrQueueFull) {
			return fmt.Errorf("%d sends taken, want 40 (%w)", n, err)
		}
		for i := range sends[:40] {
			if _, err := one(ctx, p.qp[0], uint64(i), endpoint.Success); err != nil {
				return err
			}
		}
	}
	recvs := make([]endpoint.RecvWR, 51)
	if n, err := p.qp[1].PostRecv(recvs...); n != 50 || !errors.Is(err, endpoint.ErrQueueFull) {
		return fmt.Errorf("%d receives taken, want 50 (%w)", n, err)
	}
	return p.close()
}

// refusedRequests are wrong before the device sees them.
func refusedRequests(ctx context.Context, cfg Config) error {
	p, err := connect(ctx, cfg, 4096, endpoint.RandomPSN())
	if err != nil {
		return err
	}
	closed, err := p.register(cfg, 0, 4096, 0, endpoint.LocalWrite)
	if err != nil {
		return err
	}
	if err := closed.Close(); err != nil {
		return err
	}
	good := p.write(1, 1, p.recv.Addr(), p.recv.RKey())
	for name, local := range map[string]endpoint.Segment{
		"past the end": {MR: p.send, Offset: 4000, Len: 97}, "negative offset": {MR: p.send, Offset: -1, Len: 1},
		"negative length": {MR: p.send, Len: -1}, "no region": {Len: 1}, "closed region": {MR: closed, Len: 1},
		"another device's region": {MR: p.recv, Len: 1},
	} {
		bad := good
		bad.Local = local
		if n, err := p.qp[0].PostSend(good, bad, good); n != 1 || err == nil {
			return fmt.Errorf("%s: %d sends taken (%v)", name, n, err)
		}
		if _, err := one(ctx, p.qp[0], 1, endpoint.Success); err != nil {
			return err
		}
		if n, err := p.qp[0].PostRecv(endpoint.RecvWR{Local: local}); n != 0 || err == nil {
			return fmt.Errorf("%s: %d receives taken (%v)", name, n, err)
		}
	}
	if n, err := p.qp[0].PostRecv(endpoint.RecvWR{Local: endpoint.Segment{MR: p.send, Len: 1}}); n != 0 || err == nil {
		return fmt.Errorf("a receive without LocalWrite was taken (%v)", err)
	}
	good.Op = 0
	if n, err := p.qp[0].PostSend(good); n != 0 || err == nil {
		return fmt.Errorf("no operation: %d sends taken (%v)", n, err)
	}
	return p.close()
}

// silence is how long nothing has to happen to be taken for not happening.
const silence = 100 * time.Millisecond

// idle says that q completes nothing for a while.
func idle(ctx context.Context, q endpoint.QP) error {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	n, err := q.Poll(ctx, make([]endpoint.Completion, 1))
	if n != 0 || !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%d completions (%v), want to wait", n, err)
	}
	return nil
}

// pollCancelled stops a Poll, and polls again.
func pollCancelled(ctx context.Context, cfg Config) error {
	p, err := connect(ctx, cfg, 4096, endpoint.RandomPSN())
	if err != nil {
		return err
	}
	stopped, cancel := context.WithCancel(ctx)
	result := make(chan error, 1)
	go func() { _, err := p.qp[0].Poll(stopped, make([]endpoint.Completion, 1)); result <- err }()
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		return fmt.Errorf("a cancelled poll gave %v", err)
	}
	if _, err := p.qp[0].Poll(ctx, nil); err == nil {
		return errors.New("a poll without room was accepted")
	}
	if _, err := p.qp[0].PostSend(p.write(1, 1, p.recv.Addr(), p.recv.RKey())); err != nil {
		return err
	}
	if _, err := one(ctx, p.qp[0], 1, endpoint.Success); err != nil {
		return err
	}
	return p.close()
}
