// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/gleam-rdma/gleam/rocev2"
)

// AppendState appends all of q that packets, posts and time can change, in a
// canonical form: two QPs of the same Config behave alike from here on if
// their encodings are equal. Work requests are named by their IDs, memory
// regions by their R_Keys, times count from now; Stats are left out. It is for
// model checking, not for storage: the form may change at any time.
func (q *QP) AppendState(b []byte, now time.Duration) []byte {
	r, s := &q.requester, &q.responder
	b = append(b, byte(q.state)|bit(r.startedRetry, 1)|bit(r.timer.armed, 2)|bit(r.rnrTimer.armed, 3)|
		byte(s.nakState)<<4|byte(s.inMessage)<<6)
	b = binary.AppendUvarint(b, uint64(r.sendQueue.count))
	for i := range r.sendQueue.count {
		w := r.sendQueue.at(i)
		b = binary.AppendUvarint(b, w.wr.ID)
		b = binary.AppendVarint(b, w.first)
		b = binary.AppendVarint(b, w.last)
	}
	b = append(b, byte(r.curWQE))
	for _, v := range [...]int64{r.una, r.nxt, r.sent, r.nextPost, int64(r.sinceAckReq)} {
		b = binary.AppendVarint(b, v)
	}
	b = append(b, r.retries|r.rnrRetries<<4)
	if r.timer.armed {
		b = binary.AppendVarint(b, int64(r.timer.at-now))
	}
	if r.rnrTimer.armed {
		b = binary.AppendVarint(b, int64(r.rnrTimer.at-now))
	}
	b = binary.AppendUvarint(b, uint64(s.recvQueue.count))
	for i := range s.recvQueue.count {
		b = binary.AppendUvarint(b, s.recvQueue.at(i).ID)
	}
	b = appendPSN(b, s.ePSN)
	b = appendPSN(b, s.ackPSN)
	b = binary.AppendUvarint(b, uint64(s.msn))
	switch s.inMessage { // the next message sets its destination anew
	case sendMessage:
		b = binary.AppendUvarint(b, uint64(s.placed))
	case writeMessage:
		b = binary.AppendUvarint(b, uint64(s.mrOffset))
		b = binary.AppendUvarint(b, uint64(s.bytesLeft))
		b = binary.AppendUvarint(b, uint64(s.dmaLen))
		b = append(b, bit(s.mr != nil, 0))
		if s.mr != nil {
			b = binary.AppendUvarint(b, uint64(s.mr.RKey))
		}
	}
	if q.cfg.paced() {
		b = append(b, bit(r.pacerTimer.armed, 0))
		b = binary.AppendVarint(b, int64(now-r.sinceAckReqAt))
		if r.pacerTimer.armed {
			b = binary.AppendVarint(b, int64(r.pacerTimer.at-now))
		}
		b = r.pacer.AppendState(b, now)
		b = q.notificationPoint.AppendState(b, now)
	}
	return b
}

func bit(v bool, n uint) byte {
	if v {
		return 1 << n
	}
	return 0
}

func appendPSN(b []byte, p rocev2.PSN) []byte { return append(b, byte(p), byte(p>>8), byte(p>>16)) }

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
	d := stateReader{b: b}
	r, s := &q.requester, &q.responder
	f := d.byte()
	q.state, r.startedRetry = State(f&1), f&2 != 0
	r.timer, r.rnrTimer = timer{armed: f&4 != 0}, timer{armed: f&8 != 0}
	s.nakState, s.inMessage = nakState(f>>4&3), messageKind(f>>6)
	r.sendQueue.count, r.sendQueue.head = 0, 0
	for range d.length(r.sendQueue.depth) {
		*r.sendQueue.push() = sendWQE{wr: posted.Send(d.uvarint()), first: d.varint(), last: d.varint()}
	}
	r.curWQE = int(d.byte())
	r.una, r.nxt, r.sent, r.nextPost, r.sinceAckReq = d.varint(), d.varint(), d.varint(), d.varint(), int(d.varint())
	v := d.byte()
	r.retries, r.rnrRetries = v&15, v>>4
	if r.timer.armed {
		r.timer.at = now + time.Duration(d.varint())
	}
	if r.rnrTimer.armed {
		r.rnrTimer.at = now + time.Duration(d.varint())
	}
	s.recvQueue.count, s.recvQueue.head = 0, 0
	for range d.length(s.recvQueue.depth) {
		*s.recvQueue.push() = posted.Recv(d.uvarint())
	}
	s.ePSN, s.ackPSN, s.msn = d.psn(), d.psn(), rocev2.MSN(d.uvarint())
	s.placed, s.mrOffset, s.bytesLeft, s.dmaLen, s.mr = 0, 0, 0, 0, nil
	switch s.inMessage {
	case sendMessage:
		s.placed = int(d.uvarint())
	case writeMessage:
		s.mrOffset, s.bytesLeft, s.dmaLen = int(d.uvarint()), uint32(d.uvarint()), uint32(d.uvarint())
		if d.byte() != 0 {
			s.mr = q.region(uint32(d.uvarint()))
			d.malformed = d.malformed || s.mr == nil
		}
	}
	r.pacerTimer = timer{}
	if q.cfg.paced() {
		r.pacerTimer.armed = d.byte()&1 != 0
		r.sinceAckReqAt = now - time.Duration(d.varint())
		if r.pacerTimer.armed {
			r.pacerTimer.at = now + time.Duration(d.varint())
		}
		d.part(r.pacer.SetState, now)
		d.part(q.notificationPoint.SetState, now)
	}
	if d.malformed {
		return nil, fmt.Errorf("%w (%d bytes)", errForeignState, len(b))
	}
	return d.b, nil
}

func (q *QP) region(rkey uint32) *MR {
	if q.cfg.Memory == nil {
		return nil
	}
	return q.cfg.Memory.byKey[rkey]
}

// stateReader reads the encoding of AppendState.
type stateReader struct {
	b         []byte
	malformed bool
}

func (d *stateReader) byte() byte {
	if len(d.b) == 0 {
		d.malformed = true
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *stateReader) psn() rocev2.PSN {
	return rocev2.PSN(d.byte()) | rocev2.PSN(d.byte())<<8 | rocev2.PSN(d.byte())<<16
}

func (d *stateReader) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.malformed, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *stateReader) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.malformed, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

// part lets another package read its part of the encoding.
func (d *stateReader) part(set func([]byte, time.Duration) ([]byte, bool), now time.Duration) {
	b, ok := set(d.b, now)
	d.b, d.malformed = b, d.malformed || !ok
}

// length reads the length of a queue with room for limit entries.
func (d *stateReader) length(limit int) int {
	n := d.uvarint()
	if n > uint64(limit) {
		d.malformed = true
		return 0
	}
	return int(n)
}
