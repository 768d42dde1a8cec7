// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// RemoteError is a peer's message that it gives up.
type RemoteError struct {
	Peer string // "member 10.0.0.2:4000"
	Text string
}

// Error names the peer and repeats its message.
func (e *RemoteError) Error() string { return e.Peer + " gave up: " + e.Text }

// conn is one side of an exchange. One goroutine uses it at a time.
type conn struct {
	c    net.Conn
	r    *bufio.Reader
	peer string // the peer's name in messages
	cut  bool   // the peer has closed or reset the connection between two messages

	home    *kept       // takes the connection after a clean exchange; nil: it is closed
	via     string      // the place at which home looks for it
	listens bool        // this side is the master's, and has accepted it
	ready   bool        // true in home: the next exchange may begin
	clean   bool        // the exchange has come to its end
	again   bool        // true: the connection has carried another exchange
	expiry  *time.Timer // the end of the wait in home
}

// writeTimeout bounds a single write: messages are short, so a peer that takes longer
// is not reading.
const writeTimeout = 5 * time.Second

func newConn(c net.Conn, role string) *conn {
	return &conn{c: c, r: bufio.NewReaderSize(c, MaxLine), peer: fmt.Sprintf("%s %s", role, c.RemoteAddr())}
}

// cause returns ctx's cause in place of the deadline error that it led to.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d, ok := ctx.Deadline(); ok && errors.Is(err, os.ErrDeadlineExceeded) && !time.Now().Before(d) {
		return context.DeadlineExceeded
	}
	return err
}

// send writes one message.
func (c *conn) send(ctx context.Context, m message) error {
	m.Version = Version
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("to %s: %w", c.peer, err)
	}
	b = append(b, '\n')
	if len(b) > MaxLine {
		return fmt.Errorf("to %s: %w", c.peer, errTooLong)
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	defer deadline(ctx, c.c)()
	if _, err := c.c.Write(b); err != nil {
		c.cut = isReset(err)
		return fmt.Errorf("to %s: send %s: %w", c.peer, m.Type, cause(ctx, err))
	}
	return nil
}

// errTLS is for a peer that speaks TLS where the exchange is plain text.
var errTLS = errors.New("wants the exchange protected by a key, and this host is set insecure: give both the key")

// line reads one line.
func (c *conn) line() ([]byte, error) {
	if b, err := c.r.Peek(1); err == nil && b[0] == 0x16 { // TLS: a handshake record
		return nil, errTLS
	}
	return c.r.ReadSlice('\n')
}

func isReset(err error) bool { return errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) }

// receive reads one message, which must be of type want.
func (c *conn) receive(ctx context.Context, want string) (message, error) {
	defer deadline(ctx, c.c)()
	line, err := c.line()
	c.cut = len(line) == 0 && (errors.Is(err, io.EOF) || isReset(err))
	switch {
	case errors.Is(err, errTLS):
		return message{}, fmt.Errorf("%s %w", c.peer, err)
	case errors.Is(err, bufio.ErrBufferFull):
		return message{}, fmt.Errorf("%s sent %w", c.peer, errTooLong)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return message{}, fmt.Errorf("the connection to %s was cut where %q was due", c.peer, want)
	case errors.Is(err, io.EOF) && len(line) > 0:
		return message{}, fmt.Errorf("%s closed the connection within a message (%s)", c.peer, excerpt(line))
	case errors.Is(err, io.EOF):
		return message{}, fmt.Errorf("%s closed the connection instead of sending %q", c.peer, want)
	case err != nil:
		return message{}, fmt.Errorf("waiting for %q from %s: %w", want, c.peer, cause(ctx, err))
	}
	m, err := parse(bytes.TrimSpace(line))
	switch {
	case err != nil:
		return message{}, fmt.Errorf("%s sent %w", c.peer, err)
	case m.Type == typeError:
		return message{}, &RemoteError{Peer: c.peer, Text: printable(m.Error)}
	case m.Type != want:
		return message{}, fmt.Errorf("%s sent %.40q where %q was due", c.peer, m.Type, want)
	}
	return m, nil
}

// refuse sends the peer the reason, if it still listens, and closes the connection.
func (c *conn) refuse(err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.send(ctx, message{Type: typeError, Error: printable(err.Error())}) // the peer may be gone: nothing is lost
	_ = c.c.Close()
}
