// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// probeTime bounds the time until a method serves its first packets: addresses are
// resolved in it.
const probeTime = 3 * time.Second

// probe sends packets at leisure until every receiver has got some, and reads
// one at each to see that it is right to the last byte. It returns why the method
// cannot serve the case, if it cannot.
func (m *meter) probe(ctx context.Context, s *testbed) (cannot string, err error) {
	var taps []*packetTap
	defer func() {
		for _, t := range taps {
			err = errors.Join(err, t.Close())
		}
	}()
	if !s.method.generatorOnly && !s.method.xdp { // a tap gets no frame that XDP drops
		for i := 1; i <= s.benchCase.legs; i++ {
			t, err := openTap(s.star.Hosts[i])
			if err != nil {
				return "", err
			}
			taps = append(taps, t)
		}
	}
	p := pace{rate: 20_000, ackEvery: 16, ackJump: 64}
	if !s.method.feedback {
		p.ackEvery = 0
	}
	for end := time.Now().Add(probeTime); ; {
		o, err := m.run(ctx, s, p, time.Millisecond, 20*time.Millisecond)
		if err != nil {
			return "", err
		}
		if o.fewest > 0 && o.loss() == 0 {
			break
		}
		if time.Now().After(end) {
			if o.fewest > 0 {
				return "", nil // it loses packets at 20,000 a second: that is a result
			}
			return fmt.Sprintf("no frame of %d bytes came through %v", s.benchCase.frameLen(), s.notes), nil
		}
	}
	for i, t := range taps {
		if err := t.check(s, i+1); err != nil {
			return "", fmt.Errorf("%s, %s: host %s: %w", s.method.name, s.benchCase, s.star.Hosts[i+1].Name, err)
		}
	}
	return "", nil
}

// packetTap reads the frames that a host receives, and sends some of its own.
type packetTap struct {
	fd      int
	buf     []byte
	control []byte
	at      time.Time // the time when the host got the last frame that next has read
}

// openTap opens a packet socket that reads received frames without waiting. It is for
// all protocols: such a socket is served before tc, one for IPv4 after it.
func openTap(h lab.Host) (*packetTap, error) { return openPacketSocket(h, lab.AllFrames) }

// openSender opens a packet socket that only sends: no received frame is copied for it.
func openSender(h lab.Host) (*packetTap, error) { return openPacketSocket(h, 0) }

// openPacketSocket opens a packet socket for a protocol in network byte order; 0: it receives
// nothing.
func openPacketSocket(h lab.Host, protocol uint16) (*packetTap, error) {
	stamped := min(1, int(protocol))
	t := &packetTap{buf: make([]byte, 9216), control: make([]byte, unix.CmsgSpace(int(unsafe.Sizeof(unix.Timespec{}))))}
	var err error
	t.fd, err = h.NS.PacketSocket(h.Interface, protocol, func(fd int) error {
		return errors.Join(
			unix.SetNonblock(fd, true),
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 1<<20),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, stamped))
	})
	return t, err
}

// send sends a frame from the host.
func (t *packetTap) send(frame []byte) error {
	for {
		_, err := unix.Write(t.fd, frame)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Close closes the socket.
func (t *packetTap) Close() error {
	if t.fd < 0 {
		return nil
	}
	return unix.Close(t.fd)
}

// next reads the next RoCEv2 data packet into f; false if there is none now.
func (t *packetTap) next(f *rocev2.Frame) (bool, error) {
	for {
		n, controls, _, _, err := unix.Recvmsg(t.fd, t.buf, t.control, unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return false, nil
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return false, fmt.Errorf("read from a packet socket: %w", err)
		}
		if rocev2.Decode(t.buf[:n], f) == rocev2.OK && f.Kind == rocev2.KindRoCE && f.Op == dataOp {
			t.at, err = arrivedAt(t.control[:controls])
			return true, err
		}
	}
}

// check reads all frames that have come and compares each with the frame that host i
// should get: payload, and the ICRC where it should be right.
func (t *packetTap) check(s *testbed, i int) error {
	sent, err := s.benchCase.dataFrame(s.dataPath(), 0)
	if err != nil {
		return err
	}
	want, payload := s.method.expected(s, i), string(payloadOf(sent))
	var f rocev2.Frame
	for n := 0; ; n++ {
		ok, err := t.next(&f)
		if err != nil {
			return err
		}
		switch {
		case !ok && n == 0:
			return errors.New("no frame was seen on its way in")
		case !ok:
			return nil
		case f.Dst() != want.dst || !s.isMember(f.BTH().DestQP(), want.qpn):
			return fmt.Errorf("a frame came for %s QPN %#x, which should be for %s QPN %#x", f.Dst(), f.BTH().DestQP(), want.dst, want.qpn)
		case string(f.Payload()) != payload:
			return errors.New("a frame came with another payload")
		case s.method.name != forwarderMethod.name && !f.VerifyICRC():
			return errors.New("a frame came with a wrong ICRC")
		}
	}
}

// isMember reports whether qpn is that of a member in one of the groups, which has the number first in the first one.
func (s *testbed) isMember(qpn, first rocev2.QPN) bool {
	n := int(qpn) - int(first)
	return n >= 0 && n%groupQPNs == 0 && n/groupQPNs < s.groups()
}

// arrivedAt returns the kernel's time stamp of a frame: when the host's driver had handed it to
// the network stack.
func arrivedAt(control []byte) (time.Time, error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return time.Time{}, fmt.Errorf("read a frame's time stamp: %w", err)
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16 {
			return time.Unix(int64(binary.NativeEndian.Uint64(m.Data)), int64(binary.NativeEndian.Uint64(m.Data[8:]))), nil
		}
	}
	return time.Time{}, errors.New("a frame came without a time stamp")
}
