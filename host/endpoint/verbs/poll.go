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
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// listen starts to read the completion channel's events. The descriptor is
// duplicated because both libibverbs and os.File close theirs.
func (q *qp) listen() error {
	fd, err := unix.FcntlInt(uintptr(q.channel.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return callError(callChannel, errnoOf(err))
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return fmt.Errorf("completion channel: %w", errors.Join(err, unix.Close(fd)))
	}
	q.events = os.NewFile(uintptr(fd), "completion channel")
	if err := q.events.SetReadDeadline(time.Time{}); err != nil { // it cannot be polled
		return err
	}
	raw, err := q.events.SyscallConn()
	if err != nil {
		return err
	}
	q.reader.Go(func() { q.readEvents(raw) })
	return nil
}

// readEvents tells Poll of events, until the channel is closed.
func (q *qp) readEvents(raw syscall.RawConn) {
	for {
		var rc C.int
		err := raw.Read(func(uintptr) bool {
			rc = C.gleam_next_event(q.channel)
			return rc != -C.EAGAIN
		})
		q.mu.Lock()
		over := q.state == closed && err != nil
		switch {
		case over:
		case err != nil:
			q.failure = fmt.Errorf("completion channel: %w", err)
		case rc == -C.EINTR:
		case rc < 0:
			q.failure = callError(callEvent, unix.Errno(-rc))
		default:
			q.armed = false
		}
		failed := q.failure != nil
		q.mu.Unlock()
		q.signal()
		if over || failed {
			return
		}
	}
}

// signal lets a Poll look again.
func (q *qp) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// Poll waits for completions.
func (q *qp) Poll(ctx context.Context, c []endpoint.Completion) (int, error) {
	if len(c) == 0 {
		return 0, errors.New("poll: no room for completions")
	}
	for {
		n, err := q.take(c)
		if err != nil {
			return 0, fmt.Errorf("poll QP 0x%x: %w", uint32(q.Info().QPN), err)
		}
		if n > 0 {
			return n, nil
		}
		select {
		case <-q.ready:
		case <-ctx.Done():
			return 0, fmt.Errorf("poll QP 0x%x: %w", uint32(q.Info().QPN), context.Cause(ctx))
		}
	}
}

// take moves completions into c. If there is none the device will tell when
// there is.
func (q *qp) take(c []endpoint.Completion) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case len(q.left) > 0:
		n := copy(c, q.left)
		q.left = q.left[n:]
		return n, nil
	case q.state == closed && q.c == nil:
		return 0, endpoint.ErrClosed
	case q.state == closed:
		return 0, nil // Close fills left, and then signals
	case q.failure != nil:
		return 0, q.failure
	}
	n, err := q.pollCQ(len(c), !q.armed)
	for i := range n {
		c[i] = q.completion(&q.wcs[i])
	}
	return n, err
}

// pollCQ puts up to max completions into wcs.
func (q *qp) pollCQ(max int, arm bool) (int, error) {
	var want C.int
	if arm {
		want = 1
	}
	r := C.gleam_poll(q.cq, &q.wcs[0], C.int(min(max, batch)), want)
	if r.armed != 0 {
		q.armed = true
	}
	if r.err != 0 {
		call := callPoll
		if arm && r.armed == 0 && r.n == 0 {
			call = callArm
		}
		return 0, callError(call, unix.Errno(r.err))
	}
	return int(r.n), nil
}

// completion translates a completion and settles its request.
func (q *qp) completion(wc *C.struct_gleam_wc) endpoint.Completion {
	queue := &q.sends
	if wc.wr_id == recvQueue {
		queue = &q.recvs
	}
	r, _ := queue.pop() // it is there: one completion for every request
	out := endpoint.Completion{ID: r.id, Op: r.op, Status: endpoint.Status(wc.status), QPN: q.info.QPN}
	if queue == &q.recvs && out.Status == endpoint.Success {
		out.Len = int(wc.byte_len)
		if wc.opcode == C.IBV_WC_RECV_RDMA_WITH_IMM {
			out.Op = endpoint.RecvWithImm
		}
		out.HasImm, out.Imm = wc.has_imm != 0, uint32(wc.imm)
	}
	return out
}
