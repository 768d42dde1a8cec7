// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package endpointtest checks that an [endpoint.Device] does what package
// endpoint says, whatever it is made of. The checks return errors and know
// nothing of package testing, so that a program can run them where there is no
// Go toolchain.
package endpointtest

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/rocev2"
)

// windowVA is where peers find the receiver's memory: no address that the
// buffer itself could have.
const windowVA = 0x7000_0000_0000

// Config says what to check.
type Config struct {
	// Devices are two that reach each other. Checks close neither.
	Devices [2]endpoint.Device
	// IPs are the addresses to use [the first of each].
	IPs [2]netip.Addr
	// PathMTU in bytes, of both.
	PathMTU int
	// QP is for all queue pairs; LocalIP and PSNs are filled in. Its timeout
	// should suit the machine.
	QP endpoint.QPConfig
	// Alloc makes a buffer that can be registered at any page; freed by the
	// second result. nil: the Go heap.
	Alloc func(n int) ([]byte, func() error, error)
}

// Check is something that devices promise.
type Check struct {
	Name string
	Run  func(ctx context.Context, cfg Config) error
}

// Checks are all of them. They are independent; each makes and closes queue
// pairs of its own.
func Checks() []Check {
	return []Check{
		{"transfer", transfer},
		{"PSN wrap", psnWrap},
		{"many messages", manyMessages},
		{"receiver not ready", receiverNotReady},
		{"wrong R_Key", wrongRKey},
		{"write past the region", writePastRegion},
		{"no RemoteWrite", noRemoteWrite},
		{"receive too short", receiveTooShort},
		{"queue full", queueFull},
		{"refused requests", refusedRequests},
		{"poll is cancelled", pollCancelled},
		{"close flushes", closeFlushes},
		{"close under load", closeUnderLoad},
		{"connect is refused", connectRefused},
	}
}

// pair is two connected queue pairs and memory: 0 sends to 1.
type pair struct {
	qp   [2]endpoint.QP
	send endpoint.MR
	recv endpoint.MR // memory at windowVA
	free []func() error
}

// connect makes a pair with size bytes of memory at each end; 0 begins at
// PSN sqpsn.
func connect(ctx context.Context, cfg Config, size int, sqpsn rocev2.PSN) (_ *pair, err error) {
	p := new(pair)
	defer func() {
		if err != nil {
			_ = p.close()
		}
	}()
	for i, d := range cfg.Devices {
		if p.qp[i], err = d.CreateQP(qpConfig(cfg, i, sqpsn)); err != nil {
			return nil, err
		}
		p.free = append(p.free, p.qp[i].Close)
	}
	for i, q := range p.qp {
		peer := p.qp[1-i].Info()
		to := endpoint.Remote{IP: peer.IP, QPN: peer.QPN, PathMTU: cfg.PathMTU, RQPSN: peer.SQPSN}
		if err := q.Connect(ctx, to); err != nil {
			return nil, err
		}
	}
	if p.send, err = p.register(cfg, 0, size, 0, 0); err != nil {
		return nil, err
	}
	p.recv, err = p.register(cfg, 1, size, windowVA, endpoint.RemoteWrite)
	return p, err
}

func qpConfig(cfg Config, i int, sqpsn rocev2.PSN) endpoint.QPConfig {
	c := cfg.QP
	c.LocalIP = cfg.IPs[i]
	c.SQPSN, c.RQPSN = endpoint.RandomPSN(), 0
	if i == 0 {
		c.SQPSN = sqpsn
	}
	return c
}

// register makes size bytes of memory at one end.
func (p *pair) register(cfg Config, i, size int, iova uint64, access endpoint.Access) (endpoint.MR, error) {
	buf := make([]byte, size)
	if cfg.Alloc != nil {
		b, free, err := cfg.Alloc(size)
		if err != nil {
			return nil, err
		}
		buf = b
		p.free = append(p.free, free)
	}
	m, err := cfg.Devices[i].RegisterMemory(buf, iova, access)
	if err != nil {
		return nil, err
	}
	p.free = append(p.free, m.Close)
	return m, nil
}

// close frees everything, youngest first: regions before their memory. Queue
// pairs are oldest, but what they still have posted is of no use to anybody.
func (p *pair) close() error {
	for _, q := range p.qp {
		if q != nil {
			if err := q.Close(); err != nil {
				return err
			}
		}
	}
	for i := len(p.free) - 1; i >= 0; i-- {
		if err := p.free[i](); err != nil {
			return err
		}
	}
	return nil
}

// next returns the next n completions of q.
func next(ctx context.Context, q endpoint.QP, n int) ([]endpoint.Completion, error) {
	all := make([]endpoint.Completion, n)
	for got := 0; got < n; {
		k, err := q.Poll(ctx, all[got:])
		if err != nil {
			return nil, fmt.Errorf("after %d of %d completions: %w", got, n, err)
		}
		got += k
	}
	return all, nil
}

// one returns the next completion of q, which is to have a status.
func one(ctx context.Context, q endpoint.QP, id uint64, want endpoint.Status) (endpoint.Completion, error) {
	all, err := next(ctx, q, 1)
	if err != nil {
		return endpoint.Completion{}, err
	}
	c := all[0]
	if c.ID != id || c.Status != want || c.QPN != q.Info().QPN {
		return c, fmt.Errorf("completion %+v of QP 0x%x, want work request %d with status %v", c, uint32(q.Info().QPN), id, want)
	}
	return c, nil
}
