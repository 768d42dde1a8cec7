// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/envelope"
)

// readOnly is a machine that only hears.
type readOnly struct{ heard *sync.WaitGroup }

func (m readOnly) Input(time.Duration, netip.AddrPort, []byte, *envelope.Output) { m.heard.Done() }
func (m readOnly) Advance(time.Duration, *envelope.Output)                       {}
func (m readOnly) NextDeadline() (time.Duration, bool)                           { return 0, false }

// The master of a group has a socket for each: one that waits for messages takes a few kilobytes.
func TestSocketsTakeLittleMemory(t *testing.T) {
	const sockets, most = 64, 16 << 10
	var before, after runtime.MemStats
	var heard sync.WaitGroup
	runtime.ReadMemStats(&before)
	for range sockets {
		c, err := listenUDP(netip.MustParseAddrPort("127.0.0.1:0"))
		if err != nil {
			t.Fatal(err)
		}
		heard.Add(1)
		d := newDriver(c, readOnly{&heard}, nil)
		defer func() {
			if err := d.close(); err != nil {
				t.Error(err)
			}
		}()
		if _, err := c.WriteToUDPAddrPort(make([]byte, envelope.MaxLen), local(c)); err != nil {
			t.Fatal(err)
		}
	}
	heard.Wait()
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / sockets; n > most {
		t.Errorf("%d bytes for each socket, want at most %d", n, most)
	}
}
