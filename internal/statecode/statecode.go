// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package statecode has the encoding of a machine's state for model checking: two machines
// with equal encodings behave alike from now on. Each struct of the state says by tags of
// its fields what belongs to it, and test/statecode generates from them two methods of
// each struct: appendState writes the state, and readState reads it again.
//
// A tag is state:"KIND = VALUE if CONDITION else OTHER", all but the kind optional. VALUE,
// CONDITION and OTHER are Go expressions, in which x is the struct and c the encoding.
// VALUE is written in place of the field. A field whose CONDITION does not hold is not
// written, and gets OTHER, or its zero value, when it would be read. The kinds:
//
//	constant     set when the machine is made, or changed from outside, and by nothing else
//	ignored      without influence: a counter, or scratch memory
//	derived      follows from other fields; VALUE, if there is one, is set after reading
//	encoded      written as its type says; the elements of a slice too, but not their number
//	list         a slice with the number of its elements
//	own(NAME)    written by hand, by c.NAME(x)
//	duration     a length of time
//	time         a time; 0 means never
//	ahead        a time without effect once it has come
//	since(D)     a time that has the effect of never once D has passed since
//	past(D)      a time that has the same effect, another one than never, once D has passed
//
// Flags come first in an encoding, and what has a condition or is written by hand last. So
// a condition may use all fields without one.
package statecode

import (
	"encoding/binary"
	"math"
	"time"
)

// Code is an encoding that is being written or read. Times in it are relative to Now.
type Code struct {
	Bytes     []byte // written so far, or to be read
	at        int    // the number of those that have been read
	Now       time.Duration
	Index     int // index of the present element, in the innermost slice of structs
	Reading   bool
	Malformed bool // Bytes is no encoding of such a machine
}

// take skips the next n bytes of Bytes. Fewer bytes than n make the encoding malformed: take returns false.
func (c *Code) take(n int) bool {
	if n <= 0 || len(c.Bytes)-c.at < n {
		c.Malformed, c.at = true, len(c.Bytes)
		return false
	}
	c.at += n
	return true
}

// Rest returns the bytes that are still to be read.
func (c *Code) Rest() []byte { return c.Bytes[c.at:] }

// unsigned and signed are the types of numbers.
type (
	unsigned interface {
		~uint8 | ~uint16 | ~uint32 | ~uint64
	}
	signed interface{ ~int | ~int32 | ~int64 }
)

// Uint encodes a number that is small in most states. One that is read and has no room in p
// is cut.
func Uint[T unsigned](c *Code, p *T) {
	if c.Reading {
		ReadUint(c, p)
	} else {
		c.Bytes = AppendUint(c.Bytes, *p)
	}
}

// AppendUint is Uint while c is written.
func AppendUint[T unsigned](b []byte, v T) []byte { return binary.AppendUvarint(b, uint64(v)) }

// ReadUint is Uint while c is read.
func ReadUint[T unsigned](c *Code, p *T) { *p = T(c.uint()) }

// uint reads a number. Most take one byte.
func (c *Code) uint() uint64 {
	if c.at < len(c.Bytes) && c.Bytes[c.at] < 1<<7 {
		c.at++
		return uint64(c.Bytes[c.at-1])
	}
	v, n := binary.Uvarint(c.Rest())
	if !c.take(n) {
		return 0
	}
	return v
}

// Int encodes a number that is near 0 in most states.
func Int[T signed](c *Code, p *T) {
	if c.Reading {
		ReadInt(c, p)
	} else {
		c.Bytes = AppendInt(c.Bytes, *p)
	}
}

// AppendInt is Int while c is written: 0, -1, 1, -2 are written as 0, 1, 2, 3.
func AppendInt[T signed](b []byte, v T) []byte {
	return binary.AppendUvarint(b, uint64(int64(v)<<1^int64(v)>>63))
}

// ReadInt is Int while c is read.
func ReadInt[T signed](c *Code, p *T) { *p = T(c.int()) }

func (c *Code) int() int64 {
	u := c.uint()
	return int64(u>>1) ^ -int64(u&1)
}

// AppendPSN writes 24 bits.
func AppendPSN[T ~uint32](b []byte, v T) []byte { return append(b, byte(v), byte(v>>8), byte(v>>16)) }

// ReadPSN reads them.
func ReadPSN[T ~uint32](c *Code, p *T) { *p = T(c.psn()) }

func (c *Code) psn() uint32 {
	if !c.take(3) {
		return 0
	}
	b := c.Bytes[c.at-3 : c.at]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
}

// AppendFloat writes the bits of a number.
func AppendFloat(b []byte, v float64) []byte { return AppendUint(b, math.Float64bits(v)) }

// ReadFloat reads them.
func ReadFloat(c *Code, p *float64) { *p = math.Float64frombits(c.uint()) }

// AppendByte writes a small number.
func AppendByte[T ~uint8](b []byte, v T) []byte { return append(b, byte(v)) }

// ReadByte reads it.
func ReadByte[T ~uint8](c *Code, p *T) { *p = T(c.ReadFlags()) }

// Bit is 1 for a flag that is set. Flags are written together, as the bits of a byte.
func Bit(flag bool) byte {
	if flag {
		return 1
	}
	return 0
}

// ReadFlags reads up to eight flags.
func (c *Code) ReadFlags() byte {
	if c.at >= len(c.Bytes) {
		c.Malformed = true
		return 0
	}
	c.at++
	return c.Bytes[c.at-1]
}

// Present encodes whether a part of the state exists, and returns it.
func (c *Code) Present(is bool) bool {
	if c.Reading {
		return c.ReadFlags() != 0
	}
	c.Bytes = append(c.Bytes, Bit(is))
	return is
}

// Time encodes a time, where 0 means never.
func (c *Code) Time(p *time.Duration) {
	if c.Reading {
		c.ReadTime(p)
	} else {
		c.Bytes = c.AppendTime(c.Bytes, *p)
	}
}

// AppendTime is Time while c is written. Times from Now on are counted from 1 on.
func (c *Code) AppendTime(b []byte, t time.Duration) []byte {
	if t == 0 {
		return append(b, 0)
	}
	if t -= c.Now; t >= 0 {
		t++
	}
	return AppendInt(b, int64(t))
}

// ReadTime is Time while c is read.
func (c *Code) ReadTime(p *time.Duration) {
	v := time.Duration(c.int())
	if v == 0 {
		*p = 0
		return
	}
	if v > 0 {
		v--
	}
	*p = v + c.Now
}

// AppendAhead writes a time that has no effect once it has come.
func (c *Code) AppendAhead(b []byte, t time.Duration) []byte {
	if t <= c.Now {
		t = 0
	}
	return c.AppendTime(b, t)
}

// AppendSince writes a time that is used for one test only: whether at least d has passed
// since. If so, it has the same effect as never.
func (c *Code) AppendSince(b []byte, t, d time.Duration) []byte {
	if c.Now-t >= d {
		t = 0
	}
	return c.AppendTime(b, t)
}

// AppendPast writes a time that is used for two tests only: whether it is set, and whether
// at least d has passed since.
func (c *Code) AppendPast(b []byte, t, d time.Duration) []byte {
	if t != 0 {
		t = max(t, c.Now-d, 1)
	}
	return c.AppendTime(b, t)
}

// Len encodes the number of entries of a part, at most most.
func (c *Code) Len(n, most int) int {
	if !c.Reading {
		c.Bytes = AppendUint(c.Bytes, uint64(n))
		return n
	}
	v := c.uint()
	if v > uint64(most) {
		c.Malformed, v = true, 0
	}
	return int(v)
}

// ReadList reads the number of elements, each of which has an encoding, and gives a slice
// that many zero ones.
func ReadList[T any](c *Code, s *[]T) {
	*s = append((*s)[:0], make([]T, c.Len(0, len(c.Rest())))...)
}
