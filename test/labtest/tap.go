// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// Tap is a packet socket at a host, for RoCEv2 packets.
type Tap struct {
	t   testing.TB
	fd  int
	buf [9216]byte
	ctl [128]byte
}

// NewTap opens a tap at a host, which is closed with the test.
func NewTap(t testing.TB, h lab.Host) *Tap {
	t.Helper()
	p := &Tap{t: t}
	var err error
	p.fd, err = h.NS.PacketSocket(h.Interface, lab.AllFrames, func(fd int) error {
		return errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10}),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(p.fd) })
	return p
}

// Send sends a frame from the host.
func (p *Tap) Send(frame []byte) {
	p.t.Helper()
	if _, err := unix.Write(p.fd, frame); err != nil {
		p.t.Fatalf("send %d bytes: %v", len(frame), err)
	}
}

// Next returns the next RoCEv2 packet, with the VLAN tag that the kernel has taken off.
func (p *Tap) Next() []byte {
	p.t.Helper()
	for {
		n, cn, _, _, err := unix.Recvmsg(p.fd, p.buf[:], p.ctl[:], 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			p.t.Fatalf("no packet came: %v", err)
		}
		b := Retag(p.buf[:n], p.ctl[:cn])
		var f rocev2.Frame
		if rocev2.Decode(b, &f); f.Kind == rocev2.KindRoCE {
			return b
		}
	}
}

// Idle fails if a RoCEv2 packet has come.
func (p *Tap) Idle() {
	p.t.Helper()
	for {
		n, _, _, _, err := unix.Recvmsg(p.fd, p.buf[:], p.ctl[:], unix.MSG_DONTWAIT)
		if err != nil {
			return
		}
		var f rocev2.Frame
		if rocev2.Decode(p.buf[:n], &f); f.Kind == rocev2.KindRoCE {
			p.t.Fatalf("a packet too many came: %x", p.buf[:n])
		}
	}
}
