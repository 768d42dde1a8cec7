// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cp

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gleam-rdma/gleam/internal/cli/terminal"
)

// use is that of the connections between sender and receivers (package oob).
const use = "gleam-cp/1"

// Frames of a connection, in the order in which they are sent.
const (
	frameHello   = 1 + iota // sender: JSON of hello
	frameEntries            // sender: entries, JSON, one a line; once or more
	frameListed             // sender: that was the last entry
	frameHave               // receiver: the first chunk, and hashes of it and the next ones
	frameHad                // receiver: that was all
	frameRight              // sender: set of the chunks whose hashes are right
	frameMissing            // receiver: set of the chunks that it misses
	frameJoin               // sender: join the group, by the exchange at the same port
	frameJoined             // receiver: empty, or why it has not joined
	frameDone               // receiver: number of the group's messages that it has done with, and of bytes that it has verified
	frameLeave              // sender: the group is over for this receiver. The answer is frameMissing
	frameChunk              // sender: a chunk
	frameFinish             // sender: that was the last chunk. The answer is frameMissing, or frameWhole
	frameWhole              // receiver: all files are whole, and have their names
	framePing               // either, at any time
	frameFailed             // either: the reason for giving up
)

// maxFrame bounds a frame in bytes: the set of all chunks, and a chunk.
const maxFrame = maxChunk + 64<<10

// hello describes a transfer.
type hello struct {
	Chunk  int    `json:"chunk"`  // bytes
	Window int    `json:"window"` // chunks that are posted at a time
	Key    []byte `json:"key"`    // the key of the chunks' HMACs
	MTU    int    `json:"mtu"`    // path MTU of the group; 0: without a group
}

func (h *hello) check() error {
	switch {
	case h.Chunk < minChunk || h.Chunk > maxChunk:
		return fmt.Errorf("chunks of %d bytes: want %d to %d", h.Chunk, minChunk, maxChunk)
	case h.Window < 2 || h.Window > maxWindow || h.Window*(h.Chunk+chunkHead) > maxRing:
		return fmt.Errorf("a window of %d chunks of %d bytes: want 2 to %d, and %d bytes in all at most", h.Window, h.Chunk, maxWindow, maxRing)
	case len(h.Key) != keySize:
		return fmt.Errorf("a key of %d bytes", len(h.Key))
	}
	return nil
}

const (
	pingEvery = time.Second
	silence   = 10 * time.Second // the silence of the other side after which a connection is given up
)

// remoteError is the other side's reason for giving up.
type remoteError string

func (e remoteError) Error() string { return string(e) }

// wire is a connection that carries frames. Any goroutine may send; one receives.
type wire struct {
	c  net.Conn
	r  *bufio.Reader
	mu sync.Mutex
	b  []byte // bytes of the last frame received

	closed sync.Once
	end    chan struct{}
}

// newWire takes ownership of c.
func newWire(c net.Conn) *wire {
	w := &wire{c: c, r: bufio.NewReaderSize(c, 64<<10), end: make(chan struct{})}
	go func() {
		tick := time.NewTicker(pingEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = w.send(framePing, nil) // the reader notices the connection's end
			case <-w.end:
				return
			}
		}
	}()
	return w
}

func (w *wire) close() {
	w.closed.Do(func() { close(w.end); _ = w.c.Close() })
}

func (w *wire) send(kind byte, data []byte) error {
	var head [5]byte
	head[0] = kind
	binary.BigEndian.PutUint32(head[1:], uint32(len(data)))
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.c.SetWriteDeadline(time.Now().Add(silence))
	if len(data) < 1024 {
		_, err := w.c.Write(append(head[:], data...))
		return err
	}
	if _, err := w.c.Write(head[:]); err != nil {
		return err
	}
	_, err := w.c.Write(data)
	return err
}

// linger is the time that the other side has to read why this one gives up: a connection
// that is closed with unread bytes loses what was sent.
const linger = time.Second

// drain reads, after fail, until the other side has closed the connection.
func (w *wire) drain() {
	_ = w.c.SetReadDeadline(time.Now().Add(linger))
	_, _ = io.Copy(io.Discard, w.r)
}

// fail tells the other side why this one gives up.
func (w *wire) fail(why error) { _ = w.send(frameFailed, []byte(why.Error())) }

func (w *wire) sendHello(h *hello) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return w.send(frameHello, b)
}

// receive returns the next frame, whose bytes are valid until the next call.
func (w *wire) receive() (kind byte, data []byte, err error) {
	for {
		_ = w.c.SetReadDeadline(time.Now().Add(silence))
		kind, data, err = readFrame(w.r, &w.b)
		if err != nil || kind != framePing {
			break
		}
	}
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		err = fmt.Errorf("nothing came for %v: is it running, and its network up?", silence)
	} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the other side closed the connection: has it been stopped?")
	}
	if err == nil && kind == frameFailed {
		err = remoteError(printable(string(data)))
	}
	return kind, data, err
}

// readFrame reads a frame into *b, which it makes longer where needed.
func readFrame(r io.Reader, b *[]byte) (kind byte, data []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := int(binary.BigEndian.Uint32(head[1:]))
	switch {
	case head[0] < frameHello || head[0] > frameFailed:
		return 0, nil, fmt.Errorf("a frame of kind %d: use the same release on all hosts", head[0])
	case n > maxFrame:
		return 0, nil, fmt.Errorf("a frame of %d bytes: the limit is %d", n, maxFrame)
	}
	if cap(*b) < n {
		*b = make([]byte, n)
	}
	data = (*b)[:n]
	_, err = io.ReadFull(r, data)
	return head[0], data, err
}

// expect is receive for one kind of frame.
func (w *wire) expect(want byte) ([]byte, error) {
	kind, data, err := w.receive()
	if err == nil && kind != want {
		err = unexpected(kind)
	}
	return data, err
}

func unexpected(kind byte) error {
	return fmt.Errorf("a frame of kind %d where it makes no sense", kind)
}

// done are the numbers of frameDone.
type done struct {
	messages int // messages of the group that the receiver has done with
	bytes    int64
}

func (d done) encode() []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(d.messages))
	return binary.BigEndian.AppendUint64(b, uint64(d.bytes))
}

func parseDone(b []byte) (d done, err error) {
	if len(b) != 16 {
		return d, fmt.Errorf("a report of %d bytes", len(b))
	}
	x, y := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	if x > 1<<40 || y > 1<<62 {
		return d, errors.New("a report with numbers that cannot be")
	}
	return done{int(x), int64(y)}, nil
}

// printable is the beginning of a peer's text, safe for a terminal.
func printable(s string) string { return terminal.Clean(s[:min(len(s), 1024)]) }

// appendHave is the content of frameHave.
func appendHave(first int, sums []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(first)), sums...)
}

// parseHave is the opposite, for n chunks.
func parseHave(b []byte, n int) (first int, sums [][]byte, err error) {
	if len(b) < 4 || (len(b)-4)%sha256.Size != 0 {
		return 0, nil, fmt.Errorf("hashes of %d bytes", len(b))
	}
	first, b = int(binary.BigEndian.Uint32(b)), b[4:]
	if count := len(b) / sha256.Size; first > n || count > n-first {
		return 0, nil, fmt.Errorf("hashes of %d chunks from %d on, of %d", count, first, n)
	}
	for ; len(b) > 0; b = b[sha256.Size:] {
		sums = append(sums, b[:sha256.Size])
	}
	return first, sums, nil
}
