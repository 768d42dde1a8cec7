// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpointtest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// closeFlushes closes queue pairs with receives posted, connected and not, and
// one that somebody waits at.
func closeFlushes(ctx context.Context, cfg Config) error {
	p, err := connect(ctx, cfg, 4096, endpoint.RandomPSN())
	if err != nil {
		return err
	}
	fresh, err := cfg.Devices[1].CreateQP(qpConfig(cfg, 1, 0))
	if err != nil {
		return err
	}
	for id := range uint64(3) {
		for _, q := range []endpoint.QP{p.qp[1], fresh} {
			if _, err := q.PostRecv(endpoint.RecvWR{ID: id, Local: endpoint.Segment{MR: p.recv, Len: 10}}); err != nil {
				return err
			}
		}
	}
	waiting := make(chan error, 1)
	go func() { _, err := p.qp[0].Poll(ctx, make([]endpoint.Completion, 1)); waiting <- err }()
	for _, q := range []endpoint.QP{p.qp[0], p.qp[1], fresh} {
		for range 2 { // the second is to do nothing
			if err := q.Close(); err != nil {
				return err
			}
		}
	}
	if err := <-waiting; !errors.Is(err, endpoint.ErrClosed) {
		return fmt.Errorf("a poll at a queue pair that was closed gave %v", err)
	}
	for _, q := range []endpoint.QP{p.qp[1], fresh} {
		for id := range uint64(3) {
			if _, err := one(ctx, q, id, endpoint.WRFlushErr); err != nil {
				return err
			}
		}
		if n, err := q.Poll(ctx, make([]endpoint.Completion, 1)); n != 0 || !errors.Is(err, endpoint.ErrClosed) {
			return fmt.Errorf("%d completions after all were flushed (%v)", n, err)
		}
		if _, err := q.PostRecv(endpoint.RecvWR{}); !errors.Is(err, endpoint.ErrClosed) {
			return fmt.Errorf("a receive for a closed queue pair: %v", err)
		}
		if _, err := q.PostSend(endpoint.SendWR{Op: endpoint.Send}); !errors.Is(err, endpoint.ErrClosed) {
			return fmt.Errorf("a send for a closed queue pair: %v", err)
		}
	}
	return p.close()
}

// closeUnderLoad closes a queue pair that one goroutine posts to and another
// polls. Every request that was taken has one completion, in order.
func closeUnderLoad(ctx context.Context, cfg Config) error {
	p, err := connect(ctx, cfg, 4096, endpoint.RandomPSN())
	if err != nil {
		return err
	}
	q := p.qp[0]
	const enough = 300 // then it is closed
	busy := make(chan struct{})
	posted, polled := make(chan result, 1), make(chan result, 1)
	go func() {
		var r result
		for {
			n, err := q.PostSend(p.write(r.n, 4096, p.recv.Addr(), p.recv.RKey()))
			r.n += uint64(n)
			switch {
			case err == nil:
			case errors.Is(err, endpoint.ErrQueueFull):
				runtime.Gosched()
			default:
				r.err = err
				posted <- r
				return
			}
		}
	}()
	go func() {
		var r result
		c := make([]endpoint.Completion, 7)
		for {
			n, err := q.Poll(ctx, c)
			if err != nil {
				r.err = err
				polled <- r
				return
			}
			for _, c := range c[:n] {
				if c.ID != r.n || c.Status != endpoint.Success && c.Status != endpoint.WRFlushErr {
					r.err = fmt.Errorf("completion %+v, want number %d", c, r.n)
					polled <- r
					return
				}
				if r.n++; r.n == enough {
					close(busy)
				}
			}
		}
	}()
	select {
	case <-busy:
	case r := <-polled:
		return fmt.Errorf("%d completions: %w", r.n, r.err)
	}
	if err := q.Close(); err != nil {
		return err
	}
	in, out := <-posted, <-polled
	if in.n != out.n || !errors.Is(in.err, endpoint.ErrClosed) || !errors.Is(out.err, endpoint.ErrClosed) {
		return fmt.Errorf("%d requests taken (%w), %d completions (%w)", in.n, in.err, out.n, out.err)
	}
	return p.close()
}

// result is how many requests somebody has seen, and what ended it.
type result struct {
	n   uint64
	err error
}

// connectRefused asks for connections that cannot be, and for one twice.
func connectRefused(ctx context.Context, cfg Config) error {
	p, err := connect(ctx, cfg, 4096, endpoint.RandomPSN())
	if err != nil {
		return err
	}
	q, err := cfg.Devices[0].CreateQP(qpConfig(cfg, 0, 0))
	if err != nil {
		return err
	}
	good := endpoint.Remote{IP: p.qp[1].Info().IP, QPN: p.qp[1].Info().QPN, PathMTU: cfg.PathMTU}
	if _, err := q.PostSend(endpoint.SendWR{Op: endpoint.Send}); err == nil {
		return errors.New("a send was taken before Connect")
	}
	for name, change := range map[string]func(*endpoint.Remote){
		"path MTU 1000": func(r *endpoint.Remote) { r.PathMTU = 1000 },
		"path MTU 0":    func(r *endpoint.Remote) { r.PathMTU = 0 },
		"path MTU 8192": func(r *endpoint.Remote) { r.PathMTU = 8192 },
		"QPN 1":         func(r *endpoint.Remote) { r.QPN = 1 },
		"PSN 2^24":      func(r *endpoint.Remote) { r.RQPSN = 1 << 24 },
		"another family": func(r *endpoint.Remote) {
			r.IP = other(r.IP)
		},
	} {
		to := good
		change(&to)
		if err := q.Connect(ctx, to); err == nil {
			return fmt.Errorf("connected with %s", name)
		}
	}
	if err := q.Connect(ctx, good); err != nil {
		return fmt.Errorf("connect after failures: %w", err)
	}
	if err := q.Connect(ctx, good); err == nil {
		return errors.New("connected twice")
	}
	if err := q.Close(); err != nil {
		return err
	}
	if err := q.Connect(ctx, good); !errors.Is(err, endpoint.ErrClosed) {
		return fmt.Errorf("connect of a closed queue pair gave %v", err)
	}
	return p.close()
}

// other returns an address of the other family.
func other(ip netip.Addr) netip.Addr {
	if ip.Is4() {
		return netip.MustParseAddr("2001:db8::1")
	}
	return netip.MustParseAddr("192.0.2.1")
}
