// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab"
)

// A host that takes an address of its network for each of its connections displaces its own at a master, and so does one
// that has many connections of one address: not that of another host, which is older than all of them.
func TestStrangersDisplaceTheirOwn(t *testing.T) {
	const many = 100 // more than a master lets wait
	for name, from := range map[string]func(i int) string{
		"an address each": func(i int) string { return fmt.Sprintf("[fd99::%x]:0", i+1) },
		"one address":     func(int) string { return "[fd77::3]:0" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3)
			stranger := w.Hosts[2]
			for i := range many {
				if err := stranger.NS.AddAddr(lab.HostInterface, netip.PrefixFrom(netip.MustParseAddr(fmt.Sprintf("fd99::%x", i+1)), 128)); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Hosts[0].NS.AddRoute(netip.MustParsePrefix("fd99::/64"), stranger.IPv6, lab.HostInterface); err != nil {
				t.Fatal(err)
			}
			m := w.master(t, rightKey, "fd77::6c65:1", 1, 20000, true)
			m.expect("peer")
			connect := func(h *lab.Host, local string) net.Conn {
				c, err := lab.In(h.NS, func() (net.Conn, error) {
					at, err := net.ResolveTCPAddr("tcp", local)
					if err != nil {
						return nil, err
					}
					d := net.Dialer{LocalAddr: at, Timeout: patience}
					return d.DialContext(t.Context(), "tcp", w.exchange(true))
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				return c
			}
			ended := func(c net.Conn, within time.Duration) bool {
				if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
					t.Fatal(err)
				}
				_, err := c.Read(make([]byte, 1))
				return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
			}
			honest := connect(&w.Hosts[1], "[fd77::2]:0")
			var first net.Conn
			for i := range many {
				if c := connect(&w.Hosts[2], from(i)); first == nil {
					first = c
				}
			}
			if !ended(first, patience) {
				t.Error("no connection has given way")
			}
			if ended(honest, 100*time.Millisecond) {
				t.Error("a host's only connection has given way to those of another one")
			}
		})
	}
}
