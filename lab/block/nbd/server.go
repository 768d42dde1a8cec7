// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

// Package nbd serves a block device by the NBD protocol: the fixed newstyle handshake, then requests of which
// many are under way at a time, with flush, FUA, trim and write-zeroes. Replies are simple ones; TLS,
// structured replies and several exports are not here.
//
// The NBD project's description of the protocol is the specification, and has the names of the constants.
package nbd

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/internal/connlimit"
)

// Device is what a Server serves. Its methods are called by many goroutines at a time, with ranges that lie inside
// of the device. With fua a method returns when what it has written is on permanent storage.
type Device interface {
	Size() int64
	Read(p []byte, off int64) error
	Write(p []byte, off int64, fua bool) error
	Trim(off, n int64, fua bool) error                // the bytes are not needed any more
	WriteZeroes(off, n int64, fua, noHole bool) error // noHole: with storage for them
	Flush() error                                     // all that was written before the call is on permanent storage
}

// MaxPayload is the most bytes of one read or write.
const MaxPayload = 32 << 20

const (
	handshakeTime = 10 * time.Second
	maxOption     = 64 << 10 // bytes of an option's data
	replyTime     = 30 * time.Second
	replyRate     = 1 << 20  // bytes a second that a client reads at least, after replyTime
	maxClients    = 16       // connections; those without a request for the device give way
	budget        = 16 << 20 // bytes of the requests of a connection that are under way: a longer one is alone
	requestCost   = 4 << 10  // bytes of budget for a request, beside its payload
)

// Handshake.
const (
	magicServer  = 0x4e42444d41474943 // NBDMAGIC
	magicOption  = 0x49484156454f5054 // IHAVEOPT
	magicReply   = 0x3e889045565a9
	fixedNew     = 1 << 0
	noZeroes     = 1 << 1
	optExport    = 1
	optAbort     = 2
	optList      = 3
	optInfo      = 6
	optGo        = 7
	repAck       = 1
	repServer    = 2
	repInfo      = 3
	repUnsup     = 1<<31 + 1
	repInvalid   = 1<<31 + 3
	repTooBig    = 1<<31 + 9
	infoExport   = 0
	infoBlock    = 3
	deviceFlags  = 1<<0 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<8 // HAS_FLAGS, FLUSH, FUA, TRIM, WRITE_ZEROES, CAN_MULTI_CONN
	preferBlocks = 4096
)

// Transmission.
const (
	magicRequest   = 0x25609513
	magicSimple    = 0x67446698
	cmdRead        = 0
	cmdWrite       = 1
	cmdDisc        = 2
	cmdFlush       = 3
	cmdTrim        = 4
	cmdWriteZeroes = 6
	flagFUA        = 1 << 0
	flagNoHole     = 1 << 1
	errIO          = 5
	errInvalid     = 22
	errNoSpace     = 28
	errOverflow    = 75
)

var be = binary.BigEndian

// Serve accepts connections until ctx ends, and then ends them. log gets the reason why a connection ended, if
// there was one. A client that does not read its replies is one: they hold maxClients * MaxPayload bytes at most,
// and those of one client for replyTime.
func Serve(ctx context.Context, ln net.Listener, d Device, log func(string)) error {
	return serveWith(ctx, ln, d, replyTime, log)
}

func serveWith(ctx context.Context, ln net.Listener, d Device, patience time.Duration, log func(string)) error {
	var conns sync.WaitGroup
	defer conns.Wait()
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	in := connlimit.Listen(ln, maxClients)
	for {
		c, err := in.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept an NBD client: %w", err)
		}
		conns.Go(func() {
			stop := context.AfterFunc(ctx, func() { _ = c.Close() })
			defer stop()
			defer c.Close()
			if err := serve(c, d, patience, connlimit.PlaceOf(c).Settle); err != nil && ctx.Err() == nil {
				log(fmt.Sprintf("NBD client %s: %v", c.RemoteAddr(), err))
			}
		})
	}
}

// serve serves a client. begin is called before the client hears that it has the device; false: the connection
// has given way to others.
func serve(c net.Conn, d Device, patience time.Duration, begin func() bool) error {
	_ = c.SetDeadline(time.Now().Add(handshakeTime))
	r := bufio.NewReaderSize(c, 256<<10)
	start, err := handshake(c, r, d, begin)
	if err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	if !start {
		return nil
	}
	_ = c.SetDeadline(time.Time{})
	s := &session{c: c, r: r, d: d, patience: patience}
	s.room.L = &s.mu
	err = s.transmit()
	s.requests.Wait()
	if s.unread != nil {
		err = fmt.Errorf("replies are not read: %w", s.unread)
	}
	if errors.Is(err, io.EOF) {
		return nil // a client that closes the connection without NBD_CMD_DISC
	}
	return err
}

// handshake negotiates until the client asks for the device; start is false if it does not.
func handshake(c net.Conn, r *bufio.Reader, d Device, begin func() bool) (start bool, err error) {
	hello := be.AppendUint64(nil, magicServer)
	hello = be.AppendUint64(hello, magicOption)
	hello = be.AppendUint16(hello, fixedNew|noZeroes)
	if _, err := c.Write(hello); err != nil {
		return false, err
	}
	var flags uint32
	if err := binary.Read(r, be, &flags); err != nil {
		return false, err
	}
	if flags&^(fixedNew|noZeroes) != 0 {
		return false, fmt.Errorf("client flags 0x%x are unknown", flags)
	}
	for {
		var o struct {
			Magic     uint64
			Kind, Len uint32
		}
		if err := binary.Read(r, be, &o); err != nil {
			return false, err
		}
		if o.Magic != magicOption {
			return false, fmt.Errorf("an option begins with 0x%x", o.Magic)
		}
		if o.Len > maxOption {
			_ = reply(c, o.Kind, repTooBig, nil)
			return false, fmt.Errorf("option %d with %d bytes of data", o.Kind, o.Len)
		}
		data := make([]byte, o.Len)
		if _, err := io.ReadFull(r, data); err != nil {
			return false, err
		}
		if (o.Kind == optExport || o.Kind == optGo && validInfo(data)) && !begin() {
			return false, fmt.Errorf("more than %d clients", maxClients)
		}
		switch o.Kind {
		case optExport: // any name: there is one device
			b := be.AppendUint64(nil, uint64(d.Size()))
			b = be.AppendUint16(b, deviceFlags)
			if flags&noZeroes == 0 {
				b = append(b, make([]byte, 124)...)
			}
			_, err := c.Write(b)
			return true, err
		case optAbort:
			return false, reply(c, o.Kind, repAck, nil)
		case optList:
			if o.Len != 0 {
				err = reply(c, o.Kind, repInvalid, nil)
			} else if err = reply(c, o.Kind, repServer, make([]byte, 4)); err == nil { // the name is empty
				err = reply(c, o.Kind, repAck, nil)
			}
		case optInfo, optGo:
			if !validInfo(data) {
				err = reply(c, o.Kind, repInvalid, nil)
				break
			}
			b := be.AppendUint16(nil, infoExport)
			b = be.AppendUint64(b, uint64(d.Size()))
			b = be.AppendUint16(b, deviceFlags)
			if err := reply(c, o.Kind, repInfo, b); err != nil {
				return false, err
			}
			b = be.AppendUint16(nil, infoBlock)
			for _, n := range []uint32{1, preferBlocks, MaxPayload} {
				b = be.AppendUint32(b, n)
			}
			if err := reply(c, o.Kind, repInfo, b); err != nil {
				return false, err
			}
			if err = reply(c, o.Kind, repAck, nil); err == nil && o.Kind == optGo {
				return true, nil
			}
		default:
			err = reply(c, o.Kind, repUnsup, nil)
		}
		if err != nil {
			return false, err
		}
	}
}

// validInfo reports whether the data of an INFO or GO option has the length that it names: that of
// the export's name, the name, the number of requests for information, and these.
func validInfo(b []byte) bool {
	if len(b) < 6 {
		return false
	}
	name := uint64(be.Uint32(b))
	if uint64(len(b)) < 6+name {
		return false
	}
	b = b[4+name:]
	return len(b) == 2+2*int(be.Uint16(b))
}

func reply(c net.Conn, option, kind uint32, data []byte) error {
	b := be.AppendUint64(nil, magicReply)
	b = be.AppendUint32(b, option)
	b = be.AppendUint32(b, kind)
	b = be.AppendUint32(b, uint32(len(data)))
	_, err := c.Write(append(b, data...))
	return err
}

// session is a connection after its handshake.
type session struct {
	c        net.Conn
	r        *bufio.Reader
	d        Device
	patience time.Duration // longest time for a reply
	requests sync.WaitGroup

	replies sync.Mutex // one at a time
	unread  error      // the connection has ended by it; guarded by replies

	mu   sync.Mutex
	used int // bytes of the budget in use
	room sync.Cond
}

type request struct {
	Magic       uint32
	Flags, Kind uint16
	Cookie      uint64
	Off         uint64
	Len         uint32
}

// transmit starts requests until the client disconnects.
func (s *session) transmit() error {
	for {
		var q request
		if err := binary.Read(s.r, be, &q); err != nil {
			return err
		}
		if q.Magic != magicRequest {
			return fmt.Errorf("a request begins with 0x%x", q.Magic)
		}
		if q.Kind == cmdDisc {
			return nil
		}
		if code := s.check(&q); code != 0 {
			if q.Kind == cmdWrite {
				if _, err := io.CopyN(io.Discard, s.r, int64(q.Len)); err != nil {
					return err
				}
			}
			if err := s.answer(&q, code, nil); err != nil {
				return err
			}
			continue
		}
		var data []byte
		cost := requestCost
		if q.Kind == cmdRead || q.Kind == cmdWrite {
			cost += int(q.Len)
		}
		s.take(cost)
		if cost > requestCost {
			data = make([]byte, q.Len)
		}
		if q.Kind == cmdWrite {
			if _, err := io.ReadFull(s.r, data); err != nil {
				return err
			}
		}
		s.requests.Go(func() {
			code := s.perform(&q, data)
			if q.Kind != cmdRead || code != 0 {
				data = nil
			}
			_ = s.answer(&q, code, data) // its error ends the connection, which transmit notices
			s.give(cost)
		})
	}
}

// check returns the error of a request that cannot be done.
func (s *session) check(q *request) uint32 {
	size := uint64(s.d.Size())
	outside := q.Off > size || uint64(q.Len) > size-q.Off
	allowed := uint16(flagFUA) // "the server MUST accept" it for every command
	switch q.Kind {
	case cmdWriteZeroes:
		allowed |= flagNoHole
	case cmdRead, cmdWrite:
		if q.Len > MaxPayload {
			return errOverflow
		}
	case cmdFlush:
		if q.Off != 0 || q.Len != 0 {
			return errInvalid
		}
	case cmdTrim:
	default:
		return errInvalid
	}
	switch {
	case q.Flags&^allowed != 0, outside && q.Kind == cmdRead, outside && q.Kind == cmdTrim:
		return errInvalid
	case outside:
		return errNoSpace
	}
	return 0
}

func (s *session) perform(q *request, data []byte) uint32 {
	fua := q.Flags&flagFUA != 0
	off, n := int64(q.Off), int64(q.Len)
	var err error
	switch q.Kind {
	case cmdRead:
		err = s.d.Read(data, off)
	case cmdWrite:
		err = s.d.Write(data, off, fua)
	case cmdFlush:
		err = s.d.Flush()
	case cmdTrim:
		err = s.d.Trim(off, n, fua)
	case cmdWriteZeroes:
		err = s.d.WriteZeroes(off, n, fua, q.Flags&flagNoHole != 0)
	}
	if err != nil {
		return errIO
	}
	return 0
}

func (s *session) answer(q *request, code uint32, data []byte) error {
	b := be.AppendUint32(make([]byte, 0, 16), magicSimple)
	b = be.AppendUint32(b, code)
	b = be.AppendUint64(b, q.Cookie)
	s.replies.Lock()
	defer s.replies.Unlock()
	if s.unread != nil {
		return s.unread
	}
	_ = s.c.SetWriteDeadline(time.Now().Add(s.patience + time.Duration(len(data))*time.Second/replyRate))
	if _, err := (&net.Buffers{b, data}).WriteTo(s.c); err != nil { // the rest would be taken for another reply
		s.unread = err
		_ = s.c.Close()
	}
	return s.unread
}

// take waits for n bytes of the budget.
func (s *session) take(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.used > 0 && s.used+n > budget {
		s.room.Wait()
	}
	s.used += n
}

func (s *session) give(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
	s.room.Broadcast()
}
