// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net"
	"sync"
	"time"
)

// alertWait bounds how long a failed write waits for the reason.
const alertWait = time.Second

// alertConn is a client's TLS connection. In TLS 1.3 the server refuses a certificate by an alert
// after the client's handshake, while the request is written. The end of the connection can be
// seen by the write first; its error has no reason then. So a failed write waits for the read,
// and returns the alert if that is how the read has ended. There is always a read: net/http has one in
// progress on each connection.
type alertConn struct {
	net.Conn
	once  sync.Once
	ended chan struct{} // closed after a read has failed
	err   error         // the error of that read
}

func newAlertConn(c net.Conn) *alertConn { return &alertConn{Conn: c, ended: make(chan struct{})} }

func (c *alertConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.once.Do(func() {
			c.err = err
			close(c.ended)
		})
	}
	return n, err
}

func (c *alertConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err == nil {
		return n, nil
	}
	wait := time.NewTimer(alertWait)
	defer wait.Stop()
	select {
	case <-c.ended:
		if _, ok := remoteAlert(c.err); ok {
			return n, c.err
		}
	case <-wait.C:
	}
	return n, err
}
