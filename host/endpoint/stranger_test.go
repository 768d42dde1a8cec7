// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
)

// A stranger is a program on a host of the network that has no key. It can connect to the
// TCP ports of the exchange like every other host.
type stranger struct {
	w  *world
	i  int // its host
	mu sync.Mutex
	// heard has all bytes that the stranger received.
	heard bytes.Buffer
}

// connect opens one connection to the exchange at at, sends send, and reads the answer
// until the connection ends.
func (s *stranger) connect(t *testing.T, at string, send string) {
	t.Helper()
	var c net.Conn
	err := s.w.Hosts[s.i].NS.Do(func() (err error) { c, err = net.DialTimeout("tcp", at, 5*time.Second); return err })
	if err != nil {
		t.Error(err)
		return
	}
	t.Cleanup(func() { c.Close() })
	_, _ = io.WriteString(c, send) // the connection may be refused half-way
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := c.Read(b)
			s.mu.Lock()
			s.heard.Write(b[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
}

// learned names the parts of a group's state that the stranger received.
func (s *stranger) learned() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, word := range []string{`"qpn"`, `"rkey"`, `"window"`, `"sq_psn"`, `"type":"group"`, `"type":"hello"`} {
		if bytes.Contains(s.heard.Bytes(), []byte(word)) {
			return s.heard.String()
		}
	}
	return ""
}

// hello is the hello message of a member in the exchange without keys.
func hello(ip netip.Addr) string {
	return fmt.Sprintf(`{"v":1,"type":"hello","member":{"ip":"%s","qpn":4096,"sq_psn":1,"rq_psn":2,"window":{"va":1,"len":1048576,"rkey":3}}}`+"\n", ip)
}

// strangers are attacks on the exchange before the members come. The victim is the
// address of a member.
var strangers = map[string]func(t *testing.T, s *stranger, at string, victim netip.Addr){
	"says nothing": func(t *testing.T, s *stranger, at string, _ netip.Addr) { s.connect(t, at, "") },
	"sends garbage": func(t *testing.T, s *stranger, at string, _ netip.Addr) {
		s.connect(t, at, "GET / HTTP/1.1\r\n\r\n")
		s.connect(t, at, "\x16\x03\x01\xff\xff"+strings.Repeat("\xff", 70000))
	},
	"claims a member's address": func(t *testing.T, s *stranger, at string, victim netip.Addr) { s.connect(t, at, hello(victim)) },
	"comes as a member of its own": func(t *testing.T, s *stranger, at string, _ netip.Addr) {
		s.connect(t, at, hello(s.w.ip(s.i)))
	},
	"opens many connections": func(t *testing.T, s *stranger, at string, _ netip.Addr) {
		for range 200 {
			s.connect(t, at, "")
		}
	},
}

// strangerWorld has a master, two members, and a host of the stranger.
func strangerWorld(t *testing.T, v6 bool) (*world, *stranger) {
	w := newWorld(t, 4, v6, accepted, auth)
	return w, &stranger{w: w, i: 3}
}

// inTime bounds a join while a stranger is at the exchange. The join must not wait for
// any of the strangers' connections.
const inTime = 3 * time.Second

// TestStrangerAtTheMaster lets strangers connect to the master before the members do: the
// join succeeds, and the strangers learn nothing.
func TestStrangerAtTheMaster(t *testing.T) {
	for name, attack := range strangers {
		for _, v6 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/ipv6=%v", name, v6), func(t *testing.T) {
				w, s := strangerWorld(t, v6)
				ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
				defer cancel()
				at := netip.AddrPortFrom(w.ip(0), oobPort).String()
				var ln net.Listener
				if err := w.Hosts[0].NS.Do(func() (err error) { ln, err = net.Listen("tcp", at); return err }); err != nil {
					t.Fatal(err)
				}
				defer ln.Close()
				results := make(chan error)
				join := func(i int) {
					results <- w.Hosts[i].NS.Do(func() (err error) {
						var g *endpoint.Group
						if i == 0 {
							g, err = endpoint.Master(ctx, endpoint.MasterConfig{Local: w.local(0), Listener: ln, Members: 2, GroupIP: w.group})
						} else {
							g, err = endpoint.Member(ctx, endpoint.MemberConfig{Local: w.local(i), Master: at})
						}
						if err == nil {
							t.Cleanup(func() { g.Close() })
						}
						return err
					})
				}
				go join(0)
				attack(t, s, at, w.ip(1))
				start := time.Now()
				time.Sleep(50 * time.Millisecond) // the stranger is first
				go join(1)
				go join(2)
				if err := errors.Join(<-results, <-results, <-results); err != nil {
					t.Errorf("the join failed: %v", err)
				}
				if d := time.Since(start); d > inTime {
					t.Errorf("the join took %v", d)
				}
				if heard := s.learned(); heard != "" {
					t.Errorf("the stranger was told %s", heard)
				}
			})
		}
	}
}

// TestStrangerAtTheMember lets strangers connect to a member that waits for its master,
// before the master does.
func TestStrangerAtTheMember(t *testing.T) {
	for name, attack := range strangers {
		t.Run(name, func(t *testing.T) {
			w, s := strangerWorld(t, false)
			ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
			defer cancel()
			at := netip.AddrPortFrom(w.ip(1), oobPort).String()
			var ln net.Listener
			if err := w.Hosts[1].NS.Do(func() (err error) { ln, err = net.Listen("tcp", at); return err }); err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			joined := make(chan error, 1)
			go func() {
				joined <- w.Hosts[1].NS.Do(func() error {
					g, err := endpoint.Member(ctx, endpoint.MemberConfig{Local: w.local(1), Listener: ln})
					if err == nil {
						t.Cleanup(func() { g.Close() })
					}
					return err
				})
			}()
			attack(t, s, at, w.ip(1))
			start := time.Now()
			time.Sleep(50 * time.Millisecond) // the stranger is first
			err := w.Hosts[0].NS.Do(func() error {
				g, err := endpoint.Master(ctx, endpoint.MasterConfig{Local: w.local(0), Addrs: []string{at}, GroupIP: w.group})
				if err == nil {
					t.Cleanup(func() { g.Close() })
				}
				return err
			})
			if err := errors.Join(err, <-joined); err != nil {
				t.Errorf("the join failed: %v", err)
			}
			if d := time.Since(start); d > inTime {
				t.Errorf("the join took %v", d)
			}
			if heard := s.learned(); heard != "" {
				t.Errorf("the stranger was told %s", heard)
			}
		})
	}
}
