// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

//go:build verbs && cgo

package verbs

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// Completions of one completion queue are told apart by wr_id: the device does
// not say of a failed one which queue it belongs to.
const (
	sendQueue = 0
	recvQueue = 1
)

// PostSend hands over send requests, with one doorbell for each batch.
func (q *qp) PostSend(wrs ...endpoint.SendWR) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for done := 0; done < len(wrs); {
		var bad error
		k := 0
		for ; k < batch && done+k < len(wrs); k++ {
			if bad = q.fillSend(&q.wrs[k], &wrs[done+k]); bad != nil {
				break
			}
		}
		if k > 0 {
			r := C.gleam_post_send(q.c, &q.wrs[0], C.int(k))
			done += int(r.n)
			if r.err != 0 {
				q.sends.drop(k - int(r.n))
				bad = postError(callSend, unix.Errno(r.err))
			}
		}
		if bad != nil {
			return done, fmt.Errorf("post send %d on QP 0x%x: %w", wrs[done].ID, uint32(q.info.QPN), bad)
		}
	}
	return len(wrs), nil
}

// fillSend checks and translates a send request.
func (q *qp) fillSend(out *C.struct_gleam_wr, w *endpoint.SendWR) error {
	switch {
	case q.state == closed:
		return endpoint.ErrClosed
	case q.state != connected:
		return errors.New("the queue pair is not connected")
	case q.sends.room() == 0:
		return endpoint.ErrQueueFull
	case w.Local.Len > q.dev.limit.message:
		return fmt.Errorf("message of %d bytes: the device's limit is %d, split it", w.Local.Len, q.dev.limit.message)
	}
	*out = C.struct_gleam_wr{wr_id: sendQueue, imm: C.uint32_t(w.Imm), remote_addr: C.uint64_t(w.RemoteAddr), rkey: C.uint32_t(w.RKey)}
	op := endpoint.SendDone
	switch w.Op {
	case endpoint.Send:
		out.op = C.IBV_WR_SEND
	case endpoint.SendImm:
		out.op = C.IBV_WR_SEND_WITH_IMM
	case endpoint.Write:
		out.op, op = C.IBV_WR_RDMA_WRITE, endpoint.WriteDone
	case endpoint.WriteImm:
		out.op, op = C.IBV_WR_RDMA_WRITE_WITH_IMM, endpoint.WriteDone
	default:
		return fmt.Errorf("unknown operation %v", w.Op)
	}
	if err := q.fillSegment(out, w.Local, 0); err != nil {
		return err
	}
	q.sends.push(request{w.ID, op})
	return nil
}

// PostRecv hands over receive requests.
func (q *qp) PostRecv(wrs ...endpoint.RecvWR) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for done := 0; done < len(wrs); {
		var bad error
		k := 0
		for ; k < batch && done+k < len(wrs); k++ {
			if bad = q.fillRecv(&q.wrs[k], &wrs[done+k]); bad != nil {
				break
			}
		}
		if k > 0 {
			r := C.gleam_post_recv(q.c, &q.wrs[0], C.int(k))
			done += int(r.n)
			if r.err != 0 {
				q.recvs.drop(k - int(r.n))
				bad = postError(callRecv, unix.Errno(r.err))
			}
		}
		if bad != nil {
			return done, fmt.Errorf("post receive %d on QP 0x%x: %w", wrs[done].ID, uint32(q.info.QPN), bad)
		}
	}
	return len(wrs), nil
}

func (q *qp) fillRecv(out *C.struct_gleam_wr, w *endpoint.RecvWR) error {
	switch {
	case q.state == closed:
		return endpoint.ErrClosed
	case q.recvs.room() == 0:
		return endpoint.ErrQueueFull
	}
	*out = C.struct_gleam_wr{wr_id: recvQueue}
	if err := q.fillSegment(out, w.Local, endpoint.LocalWrite); err != nil {
		return err
	}
	q.recvs.push(request{w.ID, endpoint.Recv})
	return nil
}

// fillSegment names the bytes of s to the device, after checking that the region
// is the device's and has the access needed.
func (q *qp) fillSegment(out *C.struct_gleam_wr, s endpoint.Segment, need endpoint.Access) error {
	if s.Len == 0 {
		return nil
	}
	m, ok := s.MR.(*mr)
	switch {
	case !ok || m == nil || m.dev != q.dev:
		return errors.New("the segment's memory region is not one of this device")
	case m.closed.Load():
		return fmt.Errorf("the segment's memory region is %w", endpoint.ErrClosed)
	case m.access&need != need:
		return errors.New("the memory region was registered without LocalWrite")
	case s.Offset < 0 || s.Len < 0 || s.Offset > len(m.buf) || s.Len > len(m.buf)-s.Offset:
		return fmt.Errorf("segment [%d, +%d) is outside of its memory region of %d bytes", s.Offset, s.Len, len(m.buf))
	}
	out.addr, out.len, out.lkey = C.uint64_t(m.base+uint64(s.Offset)), C.uint32_t(s.Len), C.uint32_t(m.lkey)
	return nil
}

// postError translates an errno of ibv_post_send or ibv_post_recv.
func postError(call string, errno unix.Errno) error {
	if errno == unix.ENOMEM {
		return fmt.Errorf("%w (%w)", endpoint.ErrQueueFull, callError(call, errno))
	}
	return callError(call, errno)
}
