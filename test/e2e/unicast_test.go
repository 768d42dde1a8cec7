// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/lab"
)

// All other traffic is the kernel's: TCP and UDP between the hosts, of both
// families, pass while a group transfer runs.
func TestUnicastBesideAGroup(t *testing.T) {
	r := newRig(t, rigConfig{star: lab.StarConfig{Hosts: 3}, memory: 8 << 20})
	r.join()
	r.fill(0)
	n := r.post(0, 100_000)
	a, b := r.star.Hosts[1], r.star.Hosts[2]
	sent := make([]byte, 1<<20)
	rand.Read(sent)
	for _, ip := range []netip.Addr{b.IPv4, b.IPv6} {
		if got := overTCP(t, a, b, ip, sent); !bytes.Equal(got, sent) {
			t.Errorf("TCP to %s: %d bytes arrived, or other ones", ip, len(got))
		}
		if got := overUDP(t, a, b, ip, sent[:1400]); !bytes.Equal(got, sent[:1400]) {
			t.Errorf("UDP to %s: %d bytes arrived, or other ones", ip, len(got))
		}
	}
	r.complete(r.hosts[0], n)
	r.same(0)
	for _, p := range r.ports() {
		if p.XDP["pass_other"] == 0 {
			t.Errorf("port %s has passed nothing on: %v", p.Name, p.XDP)
		}
	}
}

// overTCP sends data from a to b and returns what b got.
func overTCP(t *testing.T, a, b lab.Host, ip netip.Addr, data []byte) (got []byte) {
	t.Helper()
	var ln net.Listener
	at := netip.AddrPortFrom(ip, 5000).String()
	if err := b.NS.Do(func() (err error) { ln, err = net.Listen("tcp", at); return err }); err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	const wait = 20 * time.Second // also for neighbour entries that are no longer right
	if err := ln.(*net.TCPListener).SetDeadline(time.Now().Add(wait)); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		failed <- a.NS.Do(func() error {
			c, err := net.DialTimeout("tcp", at, wait)
			for end := time.Now().Add(wait / 2); err != nil && time.Now().Before(end); {
				time.Sleep(100 * time.Millisecond)
				c, err = net.DialTimeout("tcp", at, wait)
			}
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write(data)
			return err
		})
	}()
	c, err := ln.Accept()
	if err == nil {
		got, err = io.ReadAll(c)
		c.Close()
	}
	if sendErr := <-failed; err != nil || sendErr != nil {
		t.Fatalf("TCP to %s: %v, %v", ip, err, sendErr)
	}
	return got
}

// overUDP sends one datagram from a to b and returns what b got.
func overUDP(t *testing.T, a, b lab.Host, ip netip.Addr, data []byte) []byte {
	t.Helper()
	at := netip.AddrPortFrom(ip, 5001)
	var in, out *net.UDPConn
	err := b.NS.Do(func() (err error) { in, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at)); return err })
	if err == nil {
		defer in.Close()
		err = a.NS.Do(func() (err error) { out, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(at)); return err })
	}
	if err == nil {
		defer out.Close()
		_, err = out.Write(data)
	}
	if err != nil {
		t.Fatalf("UDP to %s: %v", ip, err)
	}
	buf := make([]byte, 2000)
	n, err := in.Read(buf)
	if err != nil {
		t.Fatalf("UDP to %s: %v", ip, err)
	}
	return buf[:n]
}
