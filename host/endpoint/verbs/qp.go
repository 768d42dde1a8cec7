// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

//go:build verbs && cgo

package verbs

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/rocev2"
)

// batch is how many work requests or completions one call into C carries.
const batch = C.GLEAM_BATCH

// qp is an endpoint.QP.
type qp struct {
	dev     *device
	cfg     endpoint.QPConfig // complete
	gid     gid
	c       *C.struct_ibv_qp
	cq      *C.struct_ibv_cq
	channel *C.struct_ibv_comp_channel

	events *os.File       // channel's descriptor again, in the network poller
	reader sync.WaitGroup // the reader of events
	ready  chan struct{}  // holds one token while there may be completions

	// changing holds a token while somebody takes the queue pair to another
	// state, which may take a second.
	changing chan struct{}

	mu           sync.Mutex // guards what follows
	info         endpoint.QPInfo
	state        state
	peer         endpoint.Remote // the peer, in RTR and later states
	abandoned    bool            // whoever wanted it connected does not wait any more
	armed        bool            // the device will send an event
	failure      error           // the failure of the event channel
	sends, recvs outstanding
	left         []endpoint.Completion // flushed by Close, not yet polled
	wrs          []C.struct_gleam_wr   // memory for posting
	wcs          []C.struct_gleam_wc   // memory for polling
}

type state uint8

const (
	initial   state = iota // INIT
	resolved               // RTR
	connected              // RTS
	closed
)

// CreateQP makes a queue pair in state INIT.
func (d *device) CreateQP(cfg endpoint.QPConfig) (endpoint.QP, error) {
	q, err := d.createQP(cfg)
	if err != nil {
		return nil, fmt.Errorf("create QP on %s: %w", d.name, err)
	}
	return q, nil
}

func (d *device) createQP(cfg endpoint.QPConfig) (_ *qp, err error) {
	if !cfg.LocalIP.IsValid() {
		cfg.LocalIP = d.gids[0].addr
	}
	i := slices.IndexFunc(d.gids, func(g gid) bool { return g.addr == cfg.LocalIP })
	if i < 0 {
		return nil, fmt.Errorf("it has no RoCEv2 GID for %s: it has %v", cfg.LocalIP, d.Addrs())
	}
	if err := completeQP(&cfg, d.limit.workRequests, d.limit.completions); err != nil {
		return nil, err
	}
	q := &qp{
		dev: d, cfg: cfg, gid: d.gids[i],
		ready: make(chan struct{}, 1), changing: make(chan struct{}, 1),
		sends: newOutstanding(cfg.MaxSend), recvs: newOutstanding(cfg.MaxRecv),
		wrs: make([]C.struct_gleam_wr, batch), wcs: make([]C.struct_gleam_wc, batch),
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, d.errClosed()
	}
	defer func() {
		if err != nil {
			_ = q.destroy()
		}
	}()
	if q.channel, err = C.ibv_create_comp_channel(d.ctx); q.channel == nil {
		return nil, callError(callChannel, errnoOf(err))
	}
	if q.cq, err = C.ibv_create_cq(d.ctx, C.int(cfg.MaxSend+cfg.MaxRecv), nil, q.channel, 0); q.cq == nil {
		return nil, callError(callCQ, errnoOf(err))
	}
	if q.c, err = C.gleam_create_qp(d.pd, q.cq, C.uint32_t(cfg.MaxSend), C.uint32_t(cfg.MaxRecv)); q.c == nil {
		return nil, callError(callQP, errnoOf(err))
	}
	if rc := C.gleam_to_init(q.c, C.uint8_t(d.port)); rc != 0 {
		return nil, callError(callInit, unix.Errno(-rc))
	}
	if err := q.listen(); err != nil {
		return nil, err
	}
	q.info = endpoint.QPInfo{IP: cfg.LocalIP, QPN: rocev2.QPN(q.c.qp_num), SQPSN: cfg.SQPSN, RQPSN: cfg.RQPSN}
	d.qps[q] = true
	return q, nil
}

// Info describes the queue pair.
func (q *qp) Info() endpoint.QPInfo {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.info
}

// Stats returns zeros: verbs count per device, if at all.
func (q *qp) Stats() endpoint.QPStats { return endpoint.QPStats{} }

// Connect takes the queue pair to RTS. If it fails, or ctx ends first, the queue
// pair is as before and Connect may be called again; but if the peer's address
// had been found when ctx ended, then only with the same peer.
func (q *qp) Connect(ctx context.Context, to endpoint.Remote) error {
	if err := q.connect(ctx, to); err != nil {
		return fmt.Errorf("connect QP 0x%x to %s QP 0x%x: %w", uint32(q.Info().QPN), to.IP, uint32(to.QPN), err)
	}
	return nil
}

func (q *qp) connect(ctx context.Context, to endpoint.Remote) error {
	active := q.dev.MaxPathMTU()
	if err := checkRemote(q.cfg.LocalIP, to, active); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case q.changing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := q.mayConnect(to); err != nil {
		<-q.changing
		return err
	}
	result := make(chan error, 1)
	go func() { // the kernel waits up to a second, and cannot be stopped
		defer func() { <-q.changing }()
		result <- q.toRTS(to, active)
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state == connected {
		return nil // just in time
	}
	q.abandoned = true
	return context.Cause(ctx)
}

// mayConnect says why the queue pair cannot be connected in its present state.
func (q *qp) mayConnect(to endpoint.Remote) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.abandoned = false
	switch {
	case q.state == closed:
		return fmt.Errorf("queue pair 0x%x: %w", uint32(q.info.QPN), endpoint.ErrClosed)
	case q.state == connected:
		return errors.New("it is connected already: make a new queue pair")
	case q.state == resolved && q.peer != to:
		return fmt.Errorf("it has been half connected to %s QP 0x%x: make a new queue pair", q.peer.IP, uint32(q.peer.QPN))
	}
	return nil
}

// toRTS does INIT to RTR to RTS. Its caller holds the token of changing.
func (q *qp) toRTS(to endpoint.Remote, active int) error {
	mtu, err := pathMTUCode(to.PathMTU)
	if err != nil {
		return err
	}
	p := C.struct_gleam_path{
		dest_qpn: C.uint32_t(to.QPN), rq_psn: C.uint32_t(to.RQPSN), sq_psn: C.uint32_t(q.cfg.SQPSN), mtu: C.uint32_t(mtu),
		port: C.uint8_t(q.gid.port), sgid_index: C.uint8_t(q.gid.index),
		hop_limit: C.uint8_t(q.cfg.HopLimit), traffic_class: C.uint8_t(q.cfg.TrafficClass),
		min_rnr_timer: C.uint8_t(rocev2.RNRCodeFor(q.cfg.MinRNRTimer)), timeout: C.uint8_t(q.cfg.Timeout),
		retry_cnt: C.uint8_t(q.cfg.RetryCount), rnr_retry: C.uint8_t(q.cfg.RNRRetry),
	}
	for i, b := range dgid(to.IP) {
		p.dgid[i] = C.uint8_t(b)
	}
	q.mu.Lock()
	from := q.state
	q.mu.Unlock()
	if from == initial {
		if rc := C.gleam_to_rtr(q.c, &p); rc != 0 {
			return rtrError(unix.Errno(-rc), q.cfg.LocalIP, to.IP, to.PathMTU, active)
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.state, q.peer, q.info.RQPSN = resolved, to, to.RQPSN
	if q.abandoned {
		return nil // nobody hears it
	}
	if rc := C.gleam_to_rts(q.c, &p); rc != 0 {
		return callError(callRTS, unix.Errno(-rc))
	}
	q.state = connected
	return nil
}

// dgid returns the GID of an address.
func dgid(ip netip.Addr) [16]byte { return ip.As16() }

// flushTimeout is how long Close waits for the device to flush work requests.
const flushTimeout = time.Second

// Close takes the queue pair to ERR, waits until the device has flushed what was
// posted, and destroys it. Poll still gives the completions.
func (q *qp) Close() error {
	q.changing <- struct{}{}
	defer func() { <-q.changing }()
	q.mu.Lock()
	if q.state == closed {
		q.mu.Unlock()
		return nil
	}
	q.state = closed
	rc := C.gleam_to_err(q.c)
	q.mu.Unlock()
	deadline := time.Now().Add(flushTimeout)
	for rc == 0 && !q.flushed() && time.Now().Before(deadline) {
		time.Sleep(100 * time.Microsecond)
	}
	q.dev.mu.Lock()
	defer q.dev.mu.Unlock()
	q.mu.Lock()
	// The device has not told of these; they are over all the same.
	for r, ok := q.sends.pop(); ok; r, ok = q.sends.pop() {
		q.left = append(q.left, q.flush(r))
	}
	for r, ok := q.recvs.pop(); ok; r, ok = q.recvs.pop() {
		q.left = append(q.left, q.flush(r))
	}
	events := q.events
	q.mu.Unlock()
	_ = events.Close() // ends the reader, which needs q.mu
	q.reader.Wait()
	q.mu.Lock()
	err := q.destroy()
	q.mu.Unlock()
	delete(q.dev.qps, q)
	q.signal()
	if err != nil {
		return fmt.Errorf("close QP 0x%x: %w", uint32(q.info.QPN), err)
	}
	return nil
}

// flush is the completion of a request that the device did not get to.
func (q *qp) flush(r request) endpoint.Completion {
	return endpoint.Completion{ID: r.id, Op: r.op, Status: endpoint.WRFlushErr, QPN: q.info.QPN}
}

// flushed takes what the device has completed, and tells if that was all.
func (q *qp) flushed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		n, err := q.pollCQ(batch, false)
		if err != nil || n == 0 {
			break
		}
		for i := range n {
			q.left = append(q.left, q.completion(&q.wcs[i]))
		}
	}
	return q.sends.n+q.recvs.n == 0
}

// destroy frees what createQP made, as far as it came.
func (q *qp) destroy() error {
	var errs []error
	free := func(call string, rc C.int) {
		if rc != 0 {
			errs = append(errs, callError(call, unix.Errno(rc)))
		}
	}
	if q.events != nil {
		_ = q.events.Close()
	}
	if q.c != nil {
		free("ibv_destroy_qp", C.ibv_destroy_qp(q.c))
	}
	if q.cq != nil {
		free("ibv_destroy_cq", C.ibv_destroy_cq(q.cq))
	}
	if q.channel != nil {
		free("ibv_destroy_comp_channel", C.ibv_destroy_comp_channel(q.channel))
	}
	q.c, q.cq, q.channel = nil, nil, nil
	return errors.Join(errs...)
}
