// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package soft

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/gleam-rdma/gleam/host/endpoint"
	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// pair is two connected queue pairs on two hosts of a star, over its bridge.
type pair struct {
	star *lab.Star
	ctx  context.Context
	dev  [2]*Device
	qp   [2]endpoint.QP
	send endpoint.MR // memory of host 0
	recv endpoint.MR // memory of host 1, at windowVA
}

const windowVA = 0x7000_0000_0000

type pairConfig struct {
	device  Config // Interface is filled in
	qp      endpoint.QPConfig
	pathMTU int
	linkMTU int
	v6      bool
	memory  int
	trace   io.Writer // the trace of host 0
	middle  *bottleneck
}

func openDevice(t testing.TB, h lab.Host, cfg Config) *Device {
	t.Helper()
	cfg.Interface = h.Interface
	var d *Device
	if err := h.NS.Do(func() (err error) { d, err = Open(cfg); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close device: %v", err)
		}
	})
	return d
}

func newPair(t testing.TB, c pairConfig) *pair {
	t.Helper()
	s := labtest.Star(t, lab.StarConfig{Hosts: 2, MTU: c.linkMTU})
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	p := &pair{star: s, ctx: ctx}
	if c.middle != nil {
		c.middle.install(t, s)
	}
	var ips [2]netip.Addr
	for i, h := range s.Hosts {
		ips[i] = h.IPv4
		if c.v6 {
			ips[i] = h.IPv6
		}
		cfg := c.device
		cfg.Seed += uint64(i)
		if i == 0 {
			cfg.Trace = c.trace
		}
		p.dev[i] = openDevice(t, h, cfg)
		qc := c.qp
		qc.LocalIP, qc.SQPSN = ips[i], endpoint.RandomPSN()
		var err error
		if p.qp[i], err = p.dev[i].CreateQP(qc); err != nil {
			t.Fatal(err)
		}
	}
	for i := range p.qp {
		peer := p.qp[1-i].Info()
		to := endpoint.Remote{IP: peer.IP, QPN: peer.QPN, PathMTU: c.pathMTU, RQPSN: peer.SQPSN}
		if err := p.qp[i].Connect(ctx, to); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if p.send, err = p.dev[0].RegisterMemory(make([]byte, c.memory), 0, 0); err != nil {
		t.Fatal(err)
	}
	if p.recv, err = p.dev[1].RegisterMemory(make([]byte, c.memory), windowVA, endpoint.RemoteWrite); err != nil {
		t.Fatal(err)
	}
	return p
}

// poll returns the next n completions, which must be successes.
func poll(t testing.TB, ctx context.Context, qp endpoint.QP, n int) []endpoint.Completion {
	t.Helper()
	cs := make([]endpoint.Completion, n)
	for got := 0; got < n; {
		k, err := qp.Poll(ctx, cs[got:])
		if err != nil {
			t.Fatalf("after %d of %d completions: %v", got, n, err)
		}
		for _, c := range cs[got : got+k] {
			if err := c.Err(); err != nil {
				t.Fatal(err)
			}
		}
		got += k
	}
	return cs
}

func fill(b []byte, seed int) {
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + seed)
	}
}

// transfer sends one message of each operation and size and compares bytes.
func (p *pair) transfer(t *testing.T, sizes []int) {
	t.Helper()
	id := uint64(0)
	for _, op := range []endpoint.WROp{endpoint.Send, endpoint.SendImm, endpoint.Write, endpoint.WriteImm} {
		for _, n := range sizes {
			id++
			what := fmt.Sprintf("%v of %d bytes", op, n)
			fill(p.send.Bytes()[:n], int(id))
			clear(p.recv.Bytes())
			receives := op != endpoint.Write
			if receives {
				if _, err := p.qp[1].PostRecv(endpoint.RecvWR{ID: id, Local: endpoint.Segment{MR: p.recv, Len: n}}); err != nil {
					t.Fatal(what, err)
				}
			}
			_, err := p.qp[0].PostSend(endpoint.SendWR{
				ID: id, Op: op, Local: endpoint.Segment{MR: p.send, Len: n},
				Imm: uint32(id), RemoteAddr: p.recv.Addr(), RKey: p.recv.RKey(),
			})
			if err != nil {
				t.Fatal(what, err)
			}
			done := poll(t, p.ctx, p.qp[0], 1)[0]
			if want := endpoint.SendDone; done.ID != id || (done.Op == want) != (op == endpoint.Send || op == endpoint.SendImm) {
				t.Errorf("%s: completion %+v", what, done)
			}
			if receives {
				got := poll(t, p.ctx, p.qp[1], 1)[0]
				imm := op == endpoint.SendImm || op == endpoint.WriteImm
				if got.ID != id || got.Len != n || got.HasImm != imm || imm && got.Imm != uint32(id) {
					t.Errorf("%s: received completion %+v", what, got)
				}
			}
			if !bytes.Equal(p.recv.Bytes()[:n], p.send.Bytes()[:n]) {
				t.Fatalf("%s: other bytes arrived", what)
			}
			if n < p.recv.Len() && p.recv.Bytes()[n] != 0 {
				t.Fatalf("%s: bytes behind the message were written", what)
			}
		}
	}
}

func sizesFor(pmtu int) []int {
	return []int{0, 1, 3, pmtu - 1, pmtu, pmtu + 1, 2*pmtu + 2, 64*pmtu + 5, 300 * pmtu}
}

func TestUnicast(t *testing.T) {
	for name, c := range map[string]pairConfig{
		"ipv4":        {pathMTU: 1024},
		"ipv6":        {pathMTU: 1024, v6: true},
		"mtu256":      {pathMTU: 256},
		"mtu2048-v6":  {pathMTU: 2048, v6: true, linkMTU: 2048 + maxHeaders},
		"vlan":        {pathMTU: 1024, device: Config{VLAN: &VLAN{ID: 77, PCP: 3}}},
		"vlan-v6":     {pathMTU: 1024, v6: true, device: Config{VLAN: &VLAN{ID: 77}}},
		"strict":      {pathMTU: 1024, device: Config{Personality: 1}},
		"loss":        {pathMTU: 1024, device: Config{Loss: 0.01, Seed: 1}, qp: endpoint.QPConfig{Timeout: 10}},
		"loss-strict": {pathMTU: 1024, device: Config{Loss: 0.01, Seed: 3, Personality: 1}, qp: endpoint.QPConfig{Timeout: 10}},
		"loss-repeat": {pathMTU: 1024, device: Config{Loss: 0.01, Seed: 4, Personality: ConnectXRepeat}, qp: endpoint.QPConfig{Timeout: 10}},
	} {
		t.Run(name, func(t *testing.T) {
			c.memory = 300*c.pathMTU + 1
			p := newPair(t, c)
			p.transfer(t, sizesFor(c.pathMTU))
			a, b := p.dev[0].Stats(), p.dev[1].Stats()
			if bad := a.RxMalformed + a.RxNoQP + a.RxBadICRC + a.RxOtherPeer + b.RxMalformed + b.RxNoQP + b.RxBadICRC + b.RxOtherPeer; bad != 0 {
				t.Errorf("dropped: %+v %+v", a, b)
			}
			if lossy := c.device.Loss > 0; lossy != (a.TxLoss+a.RxLoss+b.TxLoss+b.RxLoss > 0) {
				t.Errorf("loss %v, dropped %d %d %d %d", c.device.Loss, a.TxLoss, a.RxLoss, b.TxLoss, b.RxLoss)
			}
		})
	}
}

func TestConnectNobodyAnswers(t *testing.T) {
	s := labtest.Star(t, lab.StarConfig{Hosts: 1})
	d := openDevice(t, s.Hosts[0], Config{ResolveTimeout: 200 * time.Millisecond})
	for _, c := range []struct{ local, group, want string }{
		{"10.77.0.1", "10.77.254.1", "nobody answers ARP for 10.77.254.1: is it in gleamd's group_prefixes, is gleamd running?"},
		{"fd77::1", "fd77::6c65:1", "nobody answers neighbour discovery for fd77::6c65:1: is it in gleamd's group_prefixes, is gleamd running?"},
	} {
		qp, err := d.CreateQP(endpoint.QPConfig{LocalIP: netip.MustParseAddr(c.local)})
		if err != nil {
			t.Fatal(err)
		}
		err = qp.Connect(t.Context(), endpoint.Remote{IP: netip.MustParseAddr(c.group), QPN: 0x4000, PathMTU: 1024})
		if !errors.Is(err, ErrNoNeighbour) || !bytes.Contains([]byte(err.Error()), []byte(c.want)) {
			t.Errorf("connect to %s: %v", c.group, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := qp.Connect(ctx, endpoint.Remote{IP: netip.MustParseAddr(c.group), QPN: 0x4000, PathMTU: 1024}); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled connect: %v", err)
		}
	}
}

// TestManyQPs makes several queue pairs of one device send at once, and loses some of
// their packets.
func TestManyQPs(t *testing.T) {
	const n, size = 8, 256 << 10
	p := newPair(t, pairConfig{pathMTU: 1024, memory: n * size, device: Config{Loss: 0.002, Seed: 7}, qp: endpoint.QPConfig{Timeout: 10}})
	fill(p.send.Bytes(), 1)
	qps := []endpoint.QP{p.qp[0]}
	for len(qps) < n {
		var q [2]endpoint.QP
		for i := range q {
			var err error
			if q[i], err = p.dev[i].CreateQP(endpoint.QPConfig{SQPSN: endpoint.RandomPSN(), Timeout: 10}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range q {
			peer := q[1-i].Info()
			if err := q[i].Connect(p.ctx, endpoint.Remote{IP: peer.IP, QPN: peer.QPN, PathMTU: 1024, RQPSN: peer.SQPSN}); err != nil {
				t.Fatal(err)
			}
		}
		qps = append(qps, q[0])
	}
	for i, q := range qps {
		_, err := q.PostSend(endpoint.SendWR{
			ID: uint64(i), Op: endpoint.Write, Local: endpoint.Segment{MR: p.send, Offset: i * size, Len: size},
			RemoteAddr: p.recv.Addr() + uint64(i*size), RKey: p.recv.RKey(),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, q := range qps {
		if c := poll(t, p.ctx, q, 1)[0]; c.ID != uint64(i) || c.QPN != q.Info().QPN {
			t.Errorf("queue pair %d: %+v", i, c)
		}
	}
	if !bytes.Equal(p.send.Bytes(), p.recv.Bytes()) {
		t.Error("other bytes arrived")
	}
}
