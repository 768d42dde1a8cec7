// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/rc"
	"github.com/gleam-rdma/gleam/rocev2"
)

// qp is an endpoint.QP.
type qp struct {
	dev *Device
	cfg endpoint.QPConfig // complete

	ready chan struct{} // holds one token while there may be completions

	mu       sync.Mutex // guards the fields below
	info     endpoint.QPInfo
	state    state
	newSends []rc.WR     // posted, not yet fetched by the loop
	newRecvs []rc.RecvWR // posted, not yet fetched by the loop
	sends    int         // posted, completion not yet polled
	recvs    int
	done     []endpoint.Completion // completions; those not yet polled are done[polled:]
	polled   int

	// Used by the loop only, once attach has run.
	rc                   *rc.QP
	path                 rocev2.Path
	sendSpare            []rc.WR     // swapped with newSends
	recvSpare            []rc.RecvWR // likewise
	rxPackets, txPackets uint64
	timeouts             uint64 // value of the timeouts counter at the last noteTimeout
	refreshing           bool
	refreshed            time.Duration // 0: never
}

type state uint8

const (
	initial state = iota
	connecting
	connected
	closed
)

// CreateQP creates a queue pair. It fails on a configuration out of range, naming each
// fault, and on a LocalIP that is not the device's.
func (d *Device) CreateQP(cfg endpoint.QPConfig) (endpoint.QP, error) {
	if !cfg.LocalIP.IsValid() {
		cfg.LocalIP = d.addrs[0]
	}
	if !slices.Contains(d.addrs, cfg.LocalIP) {
		return nil, fmt.Errorf("create QP: %s is not an address of %s: it has %v", cfg.LocalIP, d.cfg.Interface, d.addrs)
	}
	setDefault(&cfg.MaxSend, 128)
	setDefault(&cfg.MaxRecv, 128)
	setDefault(&cfg.Timeout, 14)
	setDefault(&cfg.RetryCount, 7)
	setDefault(&cfg.RNRRetry, 7)
	setDefault(&cfg.MinRNRTimer, 640*time.Microsecond)
	setDefault(&cfg.HopLimit, 64)
	if cfg.Timeout > 31 {
		return nil, fmt.Errorf("create QP: timeout code %d: want 1 to 31 (4.096 µs * 2^code)", cfg.Timeout)
	}
	q := &qp{dev: d, cfg: cfg, ready: make(chan struct{}, 1)}
	// A trial, so that faults show here and not in Connect.
	c := q.rcConfig(endpoint.Remote{QPN: 0x10, PathMTU: 256, RQPSN: cfg.RQPSN})
	c.LocalQPN = 0x10
	if _, err := rc.New(c); err != nil {
		return nil, fmt.Errorf("create QP: %w", err)
	}
	if err := d.addQP(q); err != nil {
		return nil, fmt.Errorf("create QP: %w", err)
	}
	return q, nil
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// addQP gives q a number. Numbers are random, so that delayed packets for a former queue
// pair do not reach a new one.
func (d *Device) addQP(q *qp) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return fmt.Errorf("device on %s: %w", d.cfg.Interface, endpoint.ErrClosed)
	}
	for {
		n := rocev2.QPN(rand.Uint32N(rocev2.PSNMask))
		if d.qps[n] == nil && n.Valid() {
			d.qps[n] = q
			q.info = endpoint.QPInfo{IP: q.cfg.LocalIP, QPN: n, SQPSN: q.cfg.SQPSN, RQPSN: q.cfg.RQPSN}
			return nil
		}
	}
}

// allQPs returns the queue pairs that are not closed.
func (d *Device) allQPs() (all []*qp) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.qps {
		all = append(all, q)
	}
	return all
}

func (q *qp) rcConfig(to endpoint.Remote) rc.Config {
	return rc.Config{
		Personality: q.dev.cfg.Personality, PMTU: to.PathMTU,
		LocalQPN: q.info.QPN, DestQPN: to.QPN, SQPSN: q.info.SQPSN, RQPSN: to.RQPSN,
		Timeout: rocev2.AckTimeout(q.cfg.Timeout), RetryCnt: q.cfg.RetryCount, RNRRetry: q.cfg.RNRRetry,
		MinRNRTimer: uint8(rocev2.RNRCodeFor(q.cfg.MinRNRTimer)), MaxUnacked: q.dev.cfg.MaxUnacked,
		SendDepth: q.cfg.MaxSend, RecvDepth: q.cfg.MaxRecv, Memory: q.dev.loop.memory,
		Congestion: q.dev.cfg.Congestion, MaxRate: q.dev.cfg.Rate, FrameOverhead: q.overhead(),
	}
}

func (q *qp) Info() endpoint.QPInfo {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.info
}

// Connect takes the queue pair to RTS. If it fails, the queue pair is unchanged, and
// Connect may be called again.
func (q *qp) Connect(ctx context.Context, to endpoint.Remote) error {
	if err := q.connect(ctx, to); err != nil {
		return fmt.Errorf("connect QP 0x%x to %s QP 0x%x: %w", uint32(q.Info().QPN), to.IP, uint32(to.QPN), err)
	}
	return nil
}

func (q *qp) connect(ctx context.Context, to endpoint.Remote) (err error) {
	d := q.dev
	if !to.IP.IsValid() || to.IP.BitLen() != q.cfg.LocalIP.BitLen() {
		return fmt.Errorf("%s is not of the same family as the queue pair's own address %s", to.IP, q.cfg.LocalIP)
	}
	if to.PathMTU > d.MaxPathMTU() {
		return fmt.Errorf("path MTU %d does not fit the MTU %d of %s: use at most %d, or raise the MTU to %d",
			to.PathMTU, d.mtu, d.cfg.Interface, d.MaxPathMTU(), to.PathMTU+maxHeaders)
	}
	if err := q.move(initial, connecting); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = q.move(connecting, initial) // fails only if the queue pair has been closed meanwhile
		}
	}()
	machine, err := rc.New(q.rcConfig(to))
	if err != nil {
		return err
	}
	mac, err := d.resolve(ctx, to.IP, false)
	if err != nil {
		return err
	}
	path := rocev2.Path{
		SrcMAC: d.mac, DstMAC: mac, Src: q.cfg.LocalIP, Dst: to.IP,
		TTL: q.cfg.HopLimit, TOS: q.cfg.TrafficClass, SrcPort: sourcePort(q.info.QPN),
	}
	if v := d.cfg.VLAN; v != nil {
		path.Tagged, path.TCI = true, v.tci()
	}
	attached := errors.New("closed while connecting")
	err = d.do(func() {
		if attached = q.move(connecting, connected); attached == nil {
			q.attach(&d.loop, machine, path, to.RQPSN)
		}
	})
	if err != nil {
		return err
	}
	return attached
}

// sourcePort is the UDP source port that Linux soft-RoCE would use
// (rxe_qp.c:rxe_qp_init_req, hash.h:hash_32): constant for a queue pair, so
// that its packets take one path.
func sourcePort(q rocev2.QPN) uint16 {
	return 0xC000 | uint16(uint32(q)*0x61C88647>>(32-14))
}

// move changes the state to to, if it is from.
func (q *qp) move(from, to state) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.state == from:
		q.state = to
		return nil
	case q.state == closed:
		return fmt.Errorf("queue pair 0x%x: %w", uint32(q.info.QPN), endpoint.ErrClosed)
	case q.state == connecting || q.state == connected:
		return errors.New("it is connected, or being connected, already: make a new queue pair")
	}
	return errors.New("it is not being connected")
}

// attach passes q to the loop. The loop calls it.
func (q *qp) attach(l *loop, machine *rc.QP, path rocev2.Path, rqpsn rocev2.PSN) {
	q.mu.Lock()
	q.info.RQPSN = rqpsn
	q.mu.Unlock()
	q.rc, q.path = machine, path
	l.qps = append(l.qps, q)
	l.byQPN[q.info.QPN] = q
	q.fetch(l)
}

// PostSend posts send requests.
func (q *qp) PostSend(wrs ...endpoint.SendWR) (int, error) {
	q.mu.Lock()
	n, err := 0, error(nil)
	for ; n < len(wrs); n++ {
		var wr rc.WR
		if wr, err = q.sendWR(&wrs[n]); err != nil {
			err = fmt.Errorf("post send %d on QP 0x%x: %w", wrs[n].ID, uint32(q.info.QPN), err)
			break
		}
		q.newSends = append(q.newSends, wr)
		q.sends++
	}
	q.mu.Unlock()
	if n > 0 {
		q.dev.kick()
	}
	return n, err
}

// sendWR checks and translates a send request. The caller holds q.mu.
func (q *qp) sendWR(w *endpoint.SendWR) (wr rc.WR, err error) {
	switch {
	case q.state == closed:
		return wr, endpoint.ErrClosed
	case q.state != connected:
		return wr, errors.New("the queue pair is not connected")
	case q.sends >= q.cfg.MaxSend:
		return wr, endpoint.ErrQueueFull
	}
	wr = rc.WR{ID: w.ID, VA: w.RemoteAddr, RKey: w.RKey, Imm: w.Imm, Signaled: true}
	switch w.Op {
	case endpoint.Send:
		wr.Op = rc.WRSend
	case endpoint.SendImm:
		wr.Op = rc.WRSendImm
	case endpoint.Write:
		wr.Op = rc.WRWrite
	case endpoint.WriteImm:
		wr.Op = rc.WRWriteImm
	default:
		return wr, fmt.Errorf("unknown operation %v", w.Op)
	}
	if w.Local.Len > rc.MaxMessage {
		return wr, fmt.Errorf("message of %d bytes: the limit is %d, split it", w.Local.Len, int64(rc.MaxMessage))
	}
	wr.Data, err = q.segment(w.Local, 0)
	return wr, err
}

// PostRecv posts receive requests.
func (q *qp) PostRecv(wrs ...endpoint.RecvWR) (int, error) {
	q.mu.Lock()
	n, err := 0, error(nil)
	for ; n < len(wrs); n++ {
		var buf []byte
		switch {
		case q.state == closed:
			err = endpoint.ErrClosed
		case q.recvs >= q.cfg.MaxRecv:
			err = endpoint.ErrQueueFull
		default:
			buf, err = q.segment(wrs[n].Local, endpoint.LocalWrite)
		}
		if err != nil {
			err = fmt.Errorf("post receive %d on QP 0x%x: %w", wrs[n].ID, uint32(q.info.QPN), err)
			break
		}
		q.newRecvs = append(q.newRecvs, rc.RecvWR{ID: wrs[n].ID, Buf: buf})
		q.recvs++
	}
	fetchable := n > 0 && q.state == connected
	q.mu.Unlock()
	if fetchable {
		q.dev.kick()
	}
	return n, err
}

// segment returns the bytes of s after a check that the region belongs to the device and
// has the access needed.
func (q *qp) segment(s endpoint.Segment, need endpoint.Access) ([]byte, error) {
	if s.Len == 0 {
		return nil, nil
	}
	m, ok := s.MR.(*mr)
	switch {
	case !ok || m == nil || m.dev != q.dev:
		return nil, errors.New("the segment's memory region is not one of this device")
	case m.closed.Load():
		return nil, fmt.Errorf("the segment's memory region is %w", endpoint.ErrClosed)
	case m.access&need != need:
		return nil, errors.New("the memory region was registered without LocalWrite")
	case s.Offset < 0 || s.Len < 0 || s.Offset > len(m.buf) || s.Len > len(m.buf)-s.Offset:
		return nil, fmt.Errorf("segment [%d, +%d) is outside of its memory region of %d bytes", s.Offset, s.Len, len(m.buf))
	}
	return m.buf[s.Offset : s.Offset+s.Len], nil
}

// fetch passes the posted work to q.rc. Only the loop calls it.
func (q *qp) fetch(l *loop) {
	q.mu.Lock()
	if len(q.newSends)+len(q.newRecvs) == 0 {
		q.mu.Unlock()
		return
	}
	q.newSends, q.sendSpare = q.sendSpare[:0], q.newSends
	q.newRecvs, q.recvSpare = q.recvSpare[:0], q.newRecvs
	q.mu.Unlock()
	// Work that q.rc refuses, because it is in error, is flushed as in verbs.
	for _, wr := range q.recvSpare {
		if q.rc.PostRecv(wr) != nil {
			l.out.Completions = append(l.out.Completions, rc.Completion{ID: wr.ID, Op: rc.WCRecv, Status: rc.WRFlushErr})
		}
	}
	for _, wr := range q.sendSpare {
		if q.rc.PostSend(wr) != nil {
			l.out.Completions = append(l.out.Completions, rc.Completion{ID: wr.ID, Op: rc.WCSend, Status: rc.WRFlushErr})
		}
	}
	clear(q.sendSpare)
	clear(q.recvSpare)
	l.drain(q)
}
