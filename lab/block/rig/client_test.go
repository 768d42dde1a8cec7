// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bufio"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// A server that ends in the middle of a reply has every request fail, the one that is being answered too.
func TestReplyIsCutOff(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "nbd")
	ln, err := net.Listen("unix", socket)
	ok(t, err)
	defer ln.Close()
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		r := bufio.NewReader(c)
		_, _ = c.Write(make([]byte, 18)) // the greeting, which the client does not look at
		_, _ = io.CopyN(io.Discard, r, 20)
		_, _ = c.Write(make([]byte, 10)) // size and flags
		for range 2 {
			_, _ = io.CopyN(io.Discard, r, 28)
		}
		b := be.AppendUint32(nil, 0x67446698)
		b = be.AppendUint32(b, 0)
		b = be.AppendUint64(b, 1)
		_, _ = c.Write(append(b, make([]byte, 100)...)) // of 4096
	}()
	n, err := Dial(socket)
	ok(t, err)
	defer n.Close()
	failed := make(chan error, 2)
	for range 2 {
		go func() { failed <- n.Do(Read, 0, 0, 4096, make([]byte, 4096)) }()
	}
	for range 2 {
		select {
		case err := <-failed:
			if err == nil {
				t.Error("a read without an answer has succeeded")
			}
		case <-time.After(10 * time.Second):
			t.Fatal("a request has no answer, and the connection is gone")
		}
	}
}
