// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package dcqcn

import (
	"encoding/binary"
	"math"
	"time"
)

// AppendState appends all of r that calls and time can change, with times
// counted from now: two of the same Config behave alike from here on if their
// encodings are equal. Stats are left out. It is for model checking (package
// rc has more about it), not for storage.
func (r *ReactionPoint) AppendState(b []byte, now time.Duration) []byte {
	r.catchUp(now)
	for _, v := range [...]float64{r.current, r.target, r.alpha, r.credit} {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	limited := int64(0)
	if r.belowLineRate {
		limited = 1
	}
	for _, v := range [...]int64{limited, int64(r.cutUntil - now), int64(r.next - now), r.sent,
		int64(r.timerRises), int64(r.byteRises)} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// rpStateLen is the length of a ReactionPoint's encoding in bytes.
const rpStateLen = (4 + 6) * 8

// SetState makes r what AppendState encoded in b, as if it were that at now, and
// returns what follows the encoding; false if b is too short. r must have the
// same Config.
func (r *ReactionPoint) SetState(b []byte, now time.Duration) ([]byte, bool) {
	if len(b) < rpStateLen {
		return nil, false
	}
	next := func() uint64 {
		v := binary.LittleEndian.Uint64(b)
		b = b[8:]
		return v
	}
	for _, p := range [...]*float64{&r.current, &r.target, &r.alpha, &r.credit} {
		*p = math.Float64frombits(next())
	}
	r.belowLineRate = next() != 0
	r.cutUntil, r.next = now+time.Duration(next()), now+time.Duration(next())
	r.sent, r.timerRises, r.byteRises = int64(next()), int(next()), int(next())
	r.creditUntil = now
	return b, true
}

// AppendState is as for a ReactionPoint.
func (n *NotificationPoint) AppendState(b []byte, now time.Duration) []byte {
	return binary.LittleEndian.AppendUint64(b, uint64(max(n.due-now, 0)))
}

// SetState is as for a ReactionPoint.
func (n *NotificationPoint) SetState(b []byte, now time.Duration) ([]byte, bool) {
	if len(b) < 8 {
		return nil, false
	}
	n.due = now + time.Duration(binary.LittleEndian.Uint64(b))
	return b[8:], true
}
