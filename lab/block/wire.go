// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package block

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// An entry of the ring, which is what the gateway WRITEs to the group, is a header and the bytes of a write. The
// immediate data of the WRITE is the entry's place in the ring.
const (
	entryHead  = 32 // seq, offset, length, operation, flags
	entryAlign = 64 // the alignment of places in the ring, and the unit of the immediate
)

// Operations of entries.
const (
	opWrite    = 1 + iota // the bytes follow
	opZero                // a hole
	opAllocate            // zeroes with storage for them
	opFlush               // the JSON of the stores that are current follows
)

// noEntry is the immediate data of a WRITE without an entry, by which replicas hear that they get the group's messages.
const noEntry = 1<<32 - 1

const flagFUA = 1 // the store is flushed behind this entry

type header struct {
	seq    uint64
	off, n int64
	op     byte
	flags  byte
}

var be = binary.BigEndian

func (h *header) put(b []byte) {
	be.PutUint64(b, h.seq)
	be.PutUint64(b[8:], uint64(h.off))
	be.PutUint64(b[16:], uint64(h.n))
	b[24], b[25] = h.op, h.flags
}

func (h *header) get(b []byte) {
	h.seq, h.off, h.n = be.Uint64(b), int64(be.Uint64(b[8:])), int64(be.Uint64(b[16:]))
	h.op, h.flags = b[24], b[25]
}

// payload is the number of bytes behind the header.
func (h *header) payload() int64 {
	if h.op == opWrite || h.op == opFlush {
		return h.n
	}
	return 0
}

// Frames of the connection between gateway and replica.
const (
	frameHello   = 1 + iota // both ways: JSON
	framePing               // both ways: a ping and its answer
	frameJoin               // gateway: join the group. seq: the last entry that is not for the replica
	frameRead               // gateway: n bytes at off, once seq is applied
	frameCopy               // gateway: bytes for off, once seq is applied
	frameZero               // gateway: likewise, n zeroes
	frameAnswer             // replica: to the frame with this id; of a read with the bytes, of a join with its seq
	frameReport             // replica: entries up to seq are applied, off: those up to it are flushed
	frameHeard              // replica: it gets the group's messages
	frameRefused            // gateway or replica: the reason, in words
)

const (
	frameHead = 1 + 8*4 + 4
	maxFrame  = 32 << 20
)

type frame struct {
	kind byte
	id   uint64
	seq  uint64
	off  int64
	n    int64
	data []byte
}

// hello is what both sides say first.
type hello struct {
	Size    int64
	Ring    int    // bytes
	Boot    string // replica: of its host's kernel: page cache survives until the next boot
	File    bool   // replica: has a file
	Live    bool   // replica: it has applied all entries up to Applied, and no others
	Applied uint64
	Label
}

// wire is a connection that carries frames. Any goroutine may send; one receives.
type wire struct {
	c  net.Conn
	r  *bufio.Reader
	mu sync.Mutex
}

func newWire(c net.Conn) *wire { return &wire{c: c, r: bufio.NewReaderSize(c, 64<<10)} }

func (w *wire) send(f *frame) error {
	b := make([]byte, frameHead, frameHead+len(f.data))
	b[0] = f.kind
	be.PutUint64(b[1:], f.id)
	be.PutUint64(b[9:], f.seq)
	be.PutUint64(b[17:], uint64(f.off))
	be.PutUint64(b[25:], uint64(f.n))
	be.PutUint32(b[33:], uint32(len(f.data)))
	b = append(b, f.data...)
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.c.Write(b)
	return err
}

func (w *wire) receive() (*frame, error) {
	var b [frameHead]byte
	if _, err := io.ReadFull(w.r, b[:]); err != nil {
		return nil, err
	}
	f := &frame{kind: b[0], id: be.Uint64(b[1:]), seq: be.Uint64(b[9:]), off: int64(be.Uint64(b[17:])), n: int64(be.Uint64(b[25:]))}
	n := be.Uint32(b[33:])
	if n > maxFrame {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	if n > 0 {
		f.data = make([]byte, n)
		if _, err := io.ReadFull(w.r, f.data); err != nil {
			return nil, err
		}
	}
	if f.kind == frameRefused {
		return nil, errors.New("refused: " + string(f.data))
	}
	return f, nil
}

// refuse tells the other side why this one gives up.
func (w *wire) refuse(why error) {
	_ = w.send(&frame{kind: frameRefused, data: []byte(why.Error())})
}

func (w *wire) sendHello(h *hello) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return w.send(&frame{kind: frameHello, data: b})
}

func (w *wire) receiveHello() (*hello, error) {
	f, err := w.receive()
	if err != nil {
		return nil, err
	}
	h := &hello{}
	if f.kind != frameHello {
		return nil, errors.New("it does not begin with a hello")
	}
	return h, json.Unmarshal(f.data, h)
}
