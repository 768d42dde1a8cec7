// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"
)

// script is a connection whose other side says what is written down.
type script struct {
	net.Conn // a connection that has the addresses
	in       *bytes.Reader
}

func (s *script) Read(b []byte) (int, error)       { return s.in.Read(b) }
func (s *script) Write(b []byte) (int, error)      { return len(b), nil }
func (s *script) Close() error                     { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

// FuzzControl has the other side of a test say anything: reading ends, and what a
// receiver takes for a test is one.
func FuzzControl(f *testing.F) {
	f.Add([]byte(`{"v":2,"type":"setup","setup":{"params":{"test":"write-bw","mode":"group","size":4096,"mtu":1024,"qps":1,"tx_depth":1,"chunk":256},"rank":1,"receivers":1}}` + "\n"))
	f.Add([]byte(`{"v":2,"type":"ready","lanes":[{"in":{"ip":"10.0.0.1","qpn":17,"sq_psn":1},"memory":{"va":1,"rkey":2}}]}` + "\n"))
	f.Add([]byte(`{"v":2,"type":"ping"}` + "\n" + `{"v":2,"type":"error","error":"x"}` + "\n"))
	addr, _ := net.Pipe()
	f.Fuzz(func(t *testing.T, b []byte) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		ended := make(chan error, 1)
		c := newControl(&script{Conn: addr, in: bytes.NewReader(b)}, "sender", func(err error) { ended <- err })
		r := &receiver{peer: newPeer(ctx, &Local{Timeout: time.Second}), opts: &ListenOptions{Params: Defaults(WriteBW)}, control: c}
		if _, err := r.handleSetup(); err == nil && (r.params.check() != nil || r.setup.Rank < 1 || r.params.memory() < 1) {
			t.Errorf("taken for a test: %+v", r.setup)
		}
		for {
			m, err := c.receive(ctx, typeReady, typeConnect, typeRun)
			if err != nil {
				break
			}
			for _, l := range m.Lanes {
				_, _ = l.In.remote(1024)
			}
		}
		c.close()
		if err := <-ended; err == nil {
			t.Error("no cause for the end")
		}
	})
}
