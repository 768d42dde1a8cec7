// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package nbd

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/test/mutation/mutant"
)

// large is a device whose reads are counted.
type large struct{ reads, bytes atomic.Int64 }

func (d *large) Size() int64 { return 1 << 40 }

func (d *large) Read(p []byte, _ int64) error {
	d.reads.Add(1)
	d.bytes.Add(int64(len(p)))
	return nil
}

func (d *large) Write([]byte, int64, bool) error            { return nil }
func (d *large) Trim(int64, int64, bool) error              { return nil }
func (d *large) WriteZeroes(int64, int64, bool, bool) error { return nil }
func (d *large) Flush() error                               { return nil }

// connected is a client after its handshake.
func connected(t *testing.T, at string) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	hello := make([]byte, 18)
	if _, err := io.ReadFull(c, hello); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(option(be.AppendUint32(nil, fixedNew|noZeroes), optExport)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	return c
}

func readRequest(cookie uint64, n uint32) []byte {
	b := be.AppendUint32(nil, magicRequest)
	b = binary.BigEndian.AppendUint16(b, 0)
	b = binary.BigEndian.AppendUint16(b, cmdRead)
	b = be.AppendUint64(b, cookie)
	b = be.AppendUint64(b, 0)
	return be.AppendUint32(b, n)
}

// served serves a device at a Unix socket, which has little patience.
func served(t *testing.T, d Device, patience time.Duration) (at string, said func() string) {
	t.Helper()
	at = filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var mu sync.Mutex
	var text strings.Builder
	go func() {
		ended <- serveWith(ctx, ln, d, patience, func(s string) {
			mu.Lock()
			defer mu.Unlock()
			text.WriteString(s + "\n")
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return at, func() string { mu.Lock(); defer mu.Unlock(); return text.String() }
}

// Clients that ask without end and read no reply have a bound of memory and of time, and
// others are served meanwhile.
func TestUnreadReplies(t *testing.T) {
	var d large
	const patience, greedy = 500 * time.Millisecond, 4
	at, said := served(t, &d, patience)
	begin := time.Now()
	var clients []net.Conn
	for range greedy {
		c := connected(t, at)
		clients = append(clients, c)
		go func() {
			for i := uint64(0); ; i++ {
				if _, err := c.Write(readRequest(i, 1<<20)); err != nil {
					return
				}
			}
		}()
	}
	other := connected(t, at)
	for i := range uint64(20) {
		asked := time.Now()
		if _, err := other.Write(readRequest(i, 4096)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(other, make([]byte, 16+4096)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(asked); took > 2*time.Second {
			t.Errorf("a read takes %v", took)
		}
	}
	if n, most := d.bytes.Load(), int64(greedy*(budget+4<<20)); n > most {
		t.Errorf("%d bytes are read for replies that nobody reads, want %d at most", n, most)
	}
	for strings.Count(said(), "replies are not read") < greedy {
		if time.Since(begin) > 15*time.Second {
			t.Fatalf("clients are still there:\n%s", said())
		}
		time.Sleep(10 * time.Millisecond)
	}
	if took := time.Since(begin); took < patience {
		t.Errorf("clients are given up after %v", took)
	}
	for _, c := range clients { // they have what was sent in time, and the end
		var late net.Error
		if n, err := io.Copy(io.Discard, c); n > 4<<20 || errors.As(err, &late) && late.Timeout() {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
}

// Connections that make no handshake keep nobody out, and clients beyond the bound are
// refused.
func TestClientsAreBounded(t *testing.T) {
	at, _ := served(t, &large{}, replyTime)
	for range 3 * maxClients {
		c, err := net.Dial("unix", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	var clients []net.Conn
	for range maxClients {
		clients = append(clients, connected(t, at))
	}
	c, err := net.Dial("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	if n, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Errorf("a client beyond the bound waits: %d bytes, %v", n, err)
	}
	for i, c := range clients {
		if _, err := c.Write(readRequest(1, 512)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 16+512)); err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
	}
}

var _ = []mutant.Mutant{
	mutant.New("a reply waits for ever", "nbd", mutant.In((*session).answer,
		"time.Now().Add(s.patience + time.Duration(len(data))*time.Second/replyRate)",
		"time.Now().Add(100 * (s.patience + time.Duration(len(data))*time.Second/replyRate))")),
	mutant.New("requests under way have no bound", "nbd", mutant.In((*session).take,
		"s.used > 0 && s.used+n > budget",
		"s.used > 1<<40 && s.used+n > budget")),
}
