// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
	"github.com/gleam-rdma/gleam/test/labtest"
)

// tap is a packet socket at a host: it sends any frame, and sees what the host
// receives, with the VLAN tag restored that the kernel takes off.
type tap struct {
	t  testing.TB
	fd int
}

// captured is a frame that came to a host.
type captured struct {
	rocev2.Frame
	raw []byte
	at  time.Duration // the time by the kernel's clock
}

// newTap opens a tap at h.
func newTap(t testing.TB, h lab.Host) *tap {
	t.Helper()
	p := &tap{t: t}
	var err error
	p.fd, err = h.NS.PacketSocket(h.Interface, lab.AllFrames, func(fd int) error {
		return errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 20_000}),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(p.fd) })
	return p
}

// send sends a frame from the host, unchanged. It tries again while the peer's ring is
// full, which a veth answers with ENOBUFS.
func (p *tap) send(frame []byte) {
	p.t.Helper()
	_, err := unix.Write(p.fd, frame)
	for end := time.Now().Add(10 * time.Second); errors.Is(err, unix.ENOBUFS) && time.Now().Before(end); _, err = unix.Write(p.fd, frame) {
		time.Sleep(100 * time.Microsecond)
	}
	if err != nil {
		p.t.Fatalf("send %d bytes: %v", len(frame), err)
	}
}

// next returns the next frame, decoded as far as it can be; nil if none came
// within 20 ms.
func (p *tap) next() *captured {
	p.t.Helper()
	buf, ctl := make([]byte, 4096), make([]byte, 128)
	n, cn, _, _, err := unix.Recvmsg(p.fd, buf, ctl, 0)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return nil
	}
	if err != nil {
		p.t.Fatalf("receive: %v", err)
	}
	c := &captured{raw: labtest.Retag(buf[:n], ctl[:cn]), at: stamp(ctl[:cn])}
	rocev2.Decode(c.raw, &c.Frame) // a frame that Decode refuses is a zero Frame
	return c
}

// stamp returns when the kernel received the frame.
func stamp(ctl []byte) time.Duration {
	messages, err := unix.ParseSocketControlMessage(ctl)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		if d := m.Data; m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(d) >= 16 {
			return time.Duration(binary.NativeEndian.Uint64(d))*time.Second + time.Duration(binary.NativeEndian.Uint64(d[8:]))
		}
	}
	return 0
}

// expect returns the next frame that match accepts.
func (p *tap) expect(what string, match func(*captured) bool) *captured {
	p.t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if c := p.next(); c != nil && match(c) {
			return c
		}
	}
	p.t.Fatalf("%s: nothing came in 10 s", what)
	return nil
}

// until waits for a condition.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 15 s", what)
		}
	}
}

// seeOutgoing makes the tap capture the host's own frames as well.
func (p *tap) seeOutgoing() {
	p.t.Helper()
	if err := unix.SetsockoptInt(p.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 0); err != nil {
		p.t.Fatal(err)
	}
}
