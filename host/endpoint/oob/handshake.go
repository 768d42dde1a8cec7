// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
)

// AuthError says that the other side of a connection has not proved that it has the
// group's key, or that it reports so of this side.
type AuthError struct {
	Peer string // "10.0.0.2:4000"
	Text string
}

// Error names the peer.
func (e *AuthError) Error() string { return e.Peer + " " + e.Text }

// Bounds on the time of a handshake. The listening side's is shorter, so that the
// connecting side receives the reason.
const (
	acceptTimeout = 4 * time.Second
	dialTimeout   = 10 * time.Second
)

// admitted is the byte by which the listening side accepts the connection. Before it the
// connecting side tries again, because the listening side may have closed the connection
// for lack of room.
const admitted = 'A'

// client performs the connecting side's part of the handshake. It takes ownership of c,
// also on error.
func (id *Identity) client(ctx context.Context, c net.Conn, use string) (net.Conn, error) {
	if id.send == 0 {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	cfg := config(id.certs[id.send], use)
	cfg.ServerName = serverName(id.send)
	t := tls.Client(c, cfg)
	err := t.HandshakeContext(ctx)
	if err == nil {
		err = awaitAdmission(ctx, t)
	}
	if err != nil {
		_ = c.Close()
		return nil, id.explain(ctx, c, err, id.send, use)
	}
	return t, nil
}

func awaitAdmission(ctx context.Context, t *tls.Conn) error {
	defer deadline(ctx, t)()
	var b [1]byte
	if _, err := io.ReadFull(t, b[:]); err != nil {
		return err
	}
	if b[0] != admitted {
		return fmt.Errorf("sent 0x%02x where 0x%02x was due", b[0], admitted)
	}
	return nil
}

// server performs the listening side's part. A peer that has not proved that it has the
// key gets nothing but this side's certificate. After the proof server calls settle,
// which may refuse the peer without a reason. server takes ownership of c, also on error.
func (id *Identity) server(waiting context.Context, c net.Conn, use string, settle func() error) (net.Conn, error) {
	if id.send == 0 {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(waiting, acceptTimeout)
	defer cancel()
	var key envelope.KeyID
	greeted := false
	t := tls.Server(c, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		greeted, key = true, keyOf(h.ServerName)
		if cert := id.certs[key]; cert != nil {
			return config(cert, use), nil
		}
		return &tls.Config{MinVersion: tls.VersionTLS13}, nil // has no certificate: ends in the alert "unrecognized name"
	}})
	// HandshakeContext would close c before a silent peer is sent the reason.
	stop := deadline(ctx, c)
	err := t.HandshakeContext(context.WithoutCancel(ctx))
	if err == nil {
		if err = settle(); err != nil {
			_ = c.Close()
			return nil, fmt.Errorf("%s %w", c.RemoteAddr(), err)
		}
		_, err = t.Write([]byte{admitted})
	}
	stop()
	if err == nil {
		return t, nil
	}
	var header tls.RecordHeaderError
	switch {
	case greeted && id.certs[key] == nil:
		err = &AuthError{c.RemoteAddr().String(), fmt.Sprintf("wants to prove that it has key %d, which is not configured here", key)}
	case errors.As(err, &header) && header.RecordHeader[0] == '{', errors.Is(err, os.ErrDeadlineExceeded) && !greeted && waiting.Err() == nil:
		sendPlainError(c, "this host wants the exchange protected by the group's key: use the same release on all hosts, and give all of them the key")
		fallthrough
	default:
		err = id.explain(ctx, c, err, key, use)
	}
	_ = c.Close()
	return nil, err
}

// plainTimeout bounds the time spent on a peer that does not speak TLS.
const plainTimeout = 200 * time.Millisecond

// sendPlainError sends a peer the reason for a refusal in the plain text of version 1, as
// earlier releases spoke it.
func sendPlainError(c net.Conn, why string) {
	_ = c.SetDeadline(time.Now().Add(plainTimeout))
	if _, err := fmt.Fprintf(c, `{"v":1,"type":"error","error":%q}`+"\n", why); err != nil {
		return
	}
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		_ = w.CloseWrite()
		// With unread bytes the connection would be reset, and the text lost.
		_, _ = io.Copy(io.Discard, io.LimitReader(c, MaxLine))
	}
}

// explain returns in words how a handshake has failed. A failure that the other side's
// key may have caused is an AuthError.
func (id *Identity) explain(ctx context.Context, c net.Conn, err error, key envelope.KeyID, use string) error {
	peer := c.RemoteAddr().String()
	refused := func(format string, args ...any) error { return &AuthError{peer, fmt.Sprintf(format, args...)} }
	var header tls.RecordHeaderError
	var op *net.OpError
	switch {
	case errors.Is(err, errOtherKey):
		return refused("has another key than this host under id %d: give all hosts of a group the same", key)
	case errors.Is(err, errOtherUse):
		return refused("has the key, but did not ask for %s: use the same release on all hosts", use)
	case errors.As(err, &header) && header.RecordHeader[0] == '{':
		return refused("speaks plain text: it is of another release, or set insecure, and this host has a key; or it had waited in vain for this host")
	case errors.As(err, &header):
		return refused("sent something that is not TLS (%q)", header.RecordHeader)
	case errors.As(err, &op) && op.Op == "remote error":
		return refused("refused this host: %s", alertText(op.Err.Error(), key, use))
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s closed the connection within the handshake", peer)
	}
	if ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%s: handshake: %w", peer, cause(ctx, err))
	}
	return fmt.Errorf("%s: handshake: %s", peer, printable(err.Error()))
}

// alertText returns the meaning of an alert of the other side. Package tls has no type
// for alerts over TCP.
func alertText(alert string, key envelope.KeyID, use string) string {
	switch alert {
	case "tls: bad certificate":
		return fmt.Sprintf("key %d is another one there: give all hosts of a group the same", key)
	case "tls: unrecognized name":
		return fmt.Sprintf("key %d is not configured there: give all hosts of a group the same", key)
	case "tls: no application protocol":
		return fmt.Sprintf("it does not speak %s: use the same release on all hosts, and check the address", use)
	}
	return printable(alert)
}

// deadline makes reads and writes on c end with ctx. The function that it returns undoes
// that.
func deadline(ctx context.Context, c net.Conn) (release func()) {
	d, _ := ctx.Deadline()
	_ = c.SetDeadline(d)
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)); close(ended) })
	return func() {
		if stop() {
			_ = c.SetDeadline(time.Time{})
		} else {
			<-ended // a deadline set later would be one of the connection's next exchange
		}
	}
}
