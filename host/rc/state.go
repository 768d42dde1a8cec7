// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"errors"
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/internal/statecode"
)

// AppendState appends all of q that packets, posts and time can change, in a
// canonical form: two QPs of the same Config behave alike from here on if
// their encodings are equal. Work requests are named by their IDs, memory
// regions by their R_Keys, times count from now; Stats are left out. It is for
// model checking, not for storage: the form may change at any time.
func (q *QP) AppendState(b []byte, now time.Duration) []byte {
	c := stateCode{Code: statecode.Code{Now: now}}
	return q.appendState(&c, b)
}

// errForeignState says that an encoding is not one of AppendState for such a QP.
var errForeignState = errors.New("rc: not the state of a QP with this configuration")

// Posted finds the work requests that an encoded state refers to by ID.
type Posted struct {
	Send func(id uint64) WR
	Recv func(id uint64) RecvWR
}

// SetState sets q to the state in b that AppendState encoded, as of time now, and returns
// the bytes after the encoding. q must have the same Config, and its Memory the same
// regions; the caller restores the bytes in buffers and regions. After an error the state
// of q is undefined.
func (q *QP) SetState(b []byte, now time.Duration, posted Posted) ([]byte, error) {
	c := stateCode{Code: statecode.Code{Bytes: b, Now: now, Reading: true}, posted: posted}
	if q.readState(&c); c.Malformed {
		return nil, fmt.Errorf("%w (%d bytes)", errForeignState, len(b))
	}
	return c.Rest(), nil
}

// stateCode is the encoding of a QP. The methods of structs are generated from the tags.
type stateCode struct {
	statecode.Code
	posted Posted
}

func (c *stateCode) sends(r *requester) {
	n := length(c, &r.sendQueue)
	if c.Reading {
		for i := range n {
			r.sendQueue.at(i).readState(c)
		}
		return
	}
	b := c.Bytes
	for i := range n {
		b = r.sendQueue.at(i).appendState(c, b)
	}
	c.Bytes = b
}

func (c *stateCode) receives(r *responder) {
	n := length(c, &r.recvQueue)
	if c.Reading {
		for i := range n {
			w := r.recvQueue.at(i)
			statecode.ReadUint(&c.Code, &w.ID)
			*w = c.posted.Recv(w.ID)
		}
		return
	}
	b := c.Bytes
	for i := range n {
		b = statecode.AppendUint(b, r.recvQueue.at(i).ID)
	}
	c.Bytes = b
}

// length encodes the number of entries of a queue. One that is read has that many.
func length[T any](c *stateCode, r *ring[T]) int {
	n := c.Len(r.count, r.depth)
	if c.Reading {
		r.head, r.count = 0, n
		for len(r.buf) < n {
			r.grow()
		}
	}
	return n
}

// request encodes a work request by its ID.
func (c *stateCode) request(w *sendWQE) {
	if !c.Reading {
		c.Bytes = statecode.AppendUint(c.Bytes, w.wr.ID)
		return
	}
	statecode.ReadUint(&c.Code, &w.wr.ID)
	w.wr = c.posted.Send(w.wr.ID)
}

// region encodes the region of a WRITE by its R_Key. The next message sets it anew.
func (c *stateCode) region(r *responder) {
	if r.inMessage != writeMessage || !c.Present(r.mr != nil) {
		if c.Reading {
			r.mr = nil
		}
		return
	}
	var rkey uint32
	if !c.Reading {
		rkey = r.mr.RKey
	}
	if statecode.Uint(&c.Code, &rkey); c.Reading {
		r.mr = nil
		if r.cfg.Memory != nil {
			r.mr = r.cfg.Memory.byKey[rkey]
		}
		c.Malformed = c.Malformed || r.mr == nil
	}
}
