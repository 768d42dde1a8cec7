// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// refusing is a connection whose read returns an error, which also ends it for writes.
type refusing struct {
	net.Conn
	read   chan error
	closed chan struct{}
}

func (r *refusing) Read([]byte) (int, error) {
	err := <-r.read
	return 0, err
}

func (r *refusing) Write([]byte) (int, error) {
	<-r.closed
	return 0, net.ErrClosed
}

func (r *refusing) Close() error { return nil }

// A server's refusal is told also where the end of the connection is seen by a write first.
func TestRefusalDuringAWrite(t *testing.T) {
	alert := &net.OpError{Op: "remote error", Err: errors.New("tls: expired certificate")}
	for name, tt := range map[string]struct {
		reads error
		wants error
	}{
		"an alert":      {alert, alert},
		"only the end":  {io.EOF, net.ErrClosed},
		"another error": {&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, net.ErrClosed},
	} {
		r := &refusing{read: make(chan error), closed: make(chan struct{})}
		c := newAlertConn(r)
		go func() {
			close(r.closed) // the write has failed
			r.read <- tt.reads
		}()
		go func() { _, _ = c.Read(nil) }()
		if _, err := c.Write([]byte("GET")); !errors.Is(err, tt.wants) {
			t.Errorf("%s: %v, want %v", name, err, tt.wants)
		}
	}
	c := &Client{where: "switch x"}
	if err := c.explain(alert); !strings.Contains(err.Error(), "refuses this client: tls: expired certificate") {
		t.Error(err)
	}
}
