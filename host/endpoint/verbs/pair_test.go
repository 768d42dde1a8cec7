// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/host/endpoint/verbs"
	"github.com/gleam-rdma/gleam/test/endpointtest"
)

// Environment variables: addresses of this host whose RDMA devices reach each
// other, two by two, such as 10.0.0.1,10.0.0.2,fd77::1,fd77::2; and an IPv4
// address on the link of the first that nobody has.
const (
	addrsVariable  = "GLEAM_VERBS_ADDRS"
	nobodyVariable = "GLEAM_VERBS_NOBODY"
)

// testAddrs returns pairs of addresses to test with.
func testAddrs(t *testing.T) (pairs [][2]netip.Addr) {
	s := os.Getenv(addrsVariable)
	if s == "" {
		t.Skipf("no RDMA devices to test with: set %s to pairs of addresses that have some", addrsVariable)
	}
	if !verbs.Built {
		t.Fatal(verbs.ErrNotBuilt)
	}
	all := strings.Split(s, ",")
	for i := 0; i+1 < len(all); i += 2 {
		pairs = append(pairs, [2]netip.Addr{netip.MustParseAddr(all[i]), netip.MustParseAddr(all[i+1])})
	}
	return pairs
}

func open(t *testing.T, ip netip.Addr) endpoint.Device {
	t.Helper()
	d, err := verbs.Open(verbs.Config{LocalIP: ip})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	if a := d.Addrs(); a[0] != ip {
		t.Errorf("opened by %s, the first address is %s", ip, a[0])
	}
	return d
}

// qpConfig suits machines under emulation as well: 0.27 s until a timeout.
var qpConfig = endpoint.QPConfig{Timeout: 16, RetryCount: 6}

// TestPair runs the checks that all backends have to pass.
func TestPair(t *testing.T) {
	for _, ips := range testAddrs(t) {
		cfg := endpointtest.Config{
			Devices: [2]endpoint.Device{open(t, ips[0]), open(t, ips[1])}, IPs: ips, PathMTU: 1024, QP: qpConfig, Alloc: verbs.Alloc,
		}
		for _, c := range endpointtest.Checks() {
			t.Run(ips[0].String()+"/"+c.Name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				if err := c.Run(ctx, cfg); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestGoHeap does some of them with slices that Go allocated.
func TestGoHeap(t *testing.T) {
	ips := testAddrs(t)[0]
	cfg := endpointtest.Config{
		Devices: [2]endpoint.Device{open(t, ips[0]), open(t, ips[1])}, IPs: ips, PathMTU: 1024, QP: qpConfig,
	}
	for _, c := range endpointtest.Checks() {
		if c.Name != "transfer" && c.Name != "many messages" {
			continue // smaller buffers, which Go does not put at the beginning of a page
		}
		t.Run(c.Name, func(t *testing.T) {
			over := make(chan struct{})
			go func() {
				for {
					select {
					case <-over:
						return
					default:
						runtime.GC()
					}
				}
			}()
			if err := c.Run(t.Context(), cfg); err != nil {
				t.Error(err)
			}
			close(over)
		})
	}
}

// TestConnectNobodyAnswers connects to an address that nobody has, gives up
// early once, and connects the same queue pair to somebody after that.
func TestConnectNobodyAnswers(t *testing.T) {
	ips := testAddrs(t)[0]
	s := os.Getenv(nobodyVariable)
	if s == "" {
		t.Skipf("set %s to an address on the link of %s that nobody has", nobodyVariable, ips[0])
	}
	nobody := netip.MustParseAddr(s)
	d := open(t, ips[0])
	q, err := d.CreateQP(qpConfig)
	if err != nil {
		t.Fatal(err)
	}
	to := endpoint.Remote{IP: nobody, QPN: 0x4000, PathMTU: 1024}
	err = q.Connect(t.Context(), to)
	if !errors.Is(err, unix.ETIMEDOUT) || !strings.Contains(err.Error(), "nobody answers ARP for "+s) {
		t.Errorf("connect gave %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if err := q.Connect(ctx, to); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 900*time.Millisecond {
		t.Errorf("connect for 50 ms gave %v after %v", err, time.Since(begin))
	}
	to.IP = ips[1]
	if err := q.Connect(t.Context(), to); err != nil {
		t.Errorf("connect to somebody: %v", err)
	}
}

// TestOpenByInterface opens the same device by its network interface, and by its
// name, and not by a combination that there is not.
func TestOpenByInterface(t *testing.T) {
	ips := testAddrs(t)[0]
	name := interfaceOf(t, ips[0])
	for _, cfg := range []verbs.Config{{Interface: name}, {Interface: name, LocalIP: ips[0], Port: 1}} {
		d, err := verbs.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(d.Addrs(), ips[0]) || d.MaxPathMTU() < 1024 {
			t.Errorf("opened by %s, it has %v and path MTU %d", cfg, d.Addrs(), d.MaxPathMTU())
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	for want, cfg := range map[string]verbs.Config{
		"no RDMA device has a GID for " + ips[0].String(): {Interface: interfaceOf(t, ips[1]), LocalIP: ips[0]},
		"there is no usable RDMA device none0":            {Device: "none0"},
		"there is no usable RDMA device: load":            {Port: 9},
		"no RDMA device is on lo":                         {Interface: "lo"},
		"no such network interface":                       {Interface: "none0"},
	} {
		if d, err := verbs.Open(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("open %s gave %v, %v, want %q", cfg, d, err, want)
		}
	}
}

// interfaceOf returns the network interface that has an address.
func interfaceOf(t *testing.T, ip netip.Addr) string {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range addrs {
			if strings.HasPrefix(a.String(), ip.String()+"/") {
				return i.Name
			}
		}
	}
	t.Fatalf("no interface has %s", ip)
	return ""
}

// TestMemoryRefused registers what cannot be.
func TestMemoryRefused(t *testing.T) {
	d := open(t, testAddrs(t)[0][0])
	buf, free, err := verbs.Alloc(8192)
	if err != nil {
		t.Fatal(err)
	}
	for name, register := range map[string]func() (endpoint.MR, error){
		"the buffer is empty":      func() (endpoint.MR, error) { return d.RegisterMemory(nil, 0, 0) },
		"unknown access bits 0x80": func() (endpoint.MR, error) { return d.RegisterMemory(buf, 0, 0x80) },
		"end of the address space": func() (endpoint.MR, error) { return d.RegisterMemory(buf, 1<<64-4096, endpoint.RemoteWrite) },
		"the buffer is 1 bytes into a page and address 0x0 is 0": func() (endpoint.MR, error) {
			return d.RegisterMemory(buf[1:], 0, endpoint.RemoteWrite)
		},
	} {
		if _, err := register(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want %q", err, name)
		}
	}
	m, err := d.RegisterMemory(buf[1:], 77, endpoint.LocalWrite) // peers do not see it
	if err != nil || m.Addr() != 77 || m.Len() != 8191 {
		t.Fatalf("registered %+v: %v", m, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Errorf("close memory after the device: %v", err)
	}
	if _, err := d.RegisterMemory(buf, 0, 0); !errors.Is(err, endpoint.ErrClosed) {
		t.Errorf("register after close: %v", err)
	}
	if _, err := d.CreateQP(endpoint.QPConfig{}); !errors.Is(err, endpoint.ErrClosed) {
		t.Errorf("create QP after close: %v", err)
	}
	if err := free(); err != nil {
		t.Error(err)
	}
}

// TestCreateQPRefused asks for queue pairs that cannot be.
func TestCreateQPRefused(t *testing.T) {
	d := open(t, testAddrs(t)[0][0])
	for want, cfg := range map[string]endpoint.QPConfig{
		"no RoCEv2 GID for 192.0.2.1": {LocalIP: netip.MustParseAddr("192.0.2.1")},
		"want 1 to":                   {MaxSend: 1 << 30},
		"timeout code 32":             {Timeout: 32},
	} {
		if _, err := d.CreateQP(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", cfg, err, want)
		}
	}
}
