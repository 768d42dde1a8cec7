// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// The generator of long frames sends packets with rising PSNs and right ICRCs, and
// the ACKs that are due.
func TestPacketGenerator(t *testing.T) {
	star := labtest.Star(t, lab.StarConfig{Hosts: 2, NoBridge: true, MTU: benchCase{payload: 4096}.mtu()})
	sinks, err := newSinks(1)
	if err != nil {
		t.Fatal(err)
	}
	frame, err := benchCase{payload: 4096}.dataFrame(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	ack, err := build(back, &rocev2.Packet{Op: rocev2.Acknowledge, DestQP: virtualQPN, Syndrome: rocev2.SyndromeACK}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := newPacketGenerator(generatorConfig{
		groups: []groupFrames{{data: frame, acks: [][]byte{ack}, acked: []rocev2.PSN{999}}}, arrived: sinks.arrived, cpu: -1,
	}, star.Hosts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closeAll(g, sinks); err != nil {
			t.Error(err)
		}
	})
	var ports []*packetTap
	for _, name := range star.Ports {
		p, err := openTap(lab.Host{NS: star.Switch, Interface: name})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		ports = append(ports, p)
	}
	if _, err := g.next(0xFFFFFE); err != nil {
		t.Fatal(err)
	}
	if err := g.send(); err != nil {
		t.Fatal(err)
	}
	psn := rocev2.PSN(0xFFFFFE)
	for range burst {
		f := await(t, ports[0], dataOp)
		if f.BTH().PSN() != psn || !f.VerifyICRC() || f.PayloadLen() != 4096 {
			t.Fatalf("PSN %#x, want %#x; ICRC is right: %v; %d bytes", f.BTH().PSN(), psn, f.VerifyICRC(), f.PayloadLen())
		}
		psn = psn.Next()
	}
	if s, _ := g.sent(); s.data != burst {
		t.Errorf("counted %d frames, sent %d", s.data, burst)
	}

	if err := sinks.arrived.Put(uint32(1), &lastValue{PSN: 1000 + 18}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time no frame is due
		if err := g.acknowledge(pace{ackEvery: 8, ackJump: 100}); err != nil {
			t.Fatal(err)
		}
	}
	if err := sinks.arrived.Put(uint32(1), &lastValue{PSN: 1300}); err != nil {
		t.Fatal(err)
	}
	if err := g.acknowledge(pace{ackEvery: 8, ackJump: 100}); err != nil {
		t.Fatal(err)
	}
	var got []rocev2.PSN
	for range 3 {
		f := await(t, ports[1], rocev2.Acknowledge)
		if !f.VerifyICRC() {
			t.Error("an ACK's ICRC is wrong")
		}
		got = append(got, f.BTH().PSN())
	}
	if s, _ := g.sent(); s.acks != 3 || !slices.Equal(got, []rocev2.PSN{1007, 1015, 1300}) {
		t.Errorf("%d ACKs: %v; want 1007, 1015, 1300", s.acks, got)
	}
}

// await reads frames until one of op comes.
func await(t *testing.T, p *packetTap, op rocev2.Opcode) *rocev2.Frame {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, 100); err != nil && err != unix.EINTR {
			t.Fatal(err)
		}
		n, _, err := unix.Recvfrom(p.fd, p.buf, unix.MSG_DONTWAIT)
		if err != nil {
			continue
		}
		f := new(rocev2.Frame)
		if rocev2.Decode(p.buf[:n], f) == rocev2.OK && f.Kind == rocev2.KindRoCE && f.Op == op {
			return f
		}
	}
	t.Fatalf("no frame of opcode %v came", op)
	return nil
}
