// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package switchbench

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/rocev2"
)

// packetGenerator sends frames that are too long for live frames, from a packet
// socket at the source, and ACKs from others at the receivers.
type packetGenerator struct {
	cfg   generatorConfig
	ack   *psnTable
	taps  []*packetTap // the taps of the receivers that acknowledge
	asked []uint32     // packets with AckReq that each has answered
	acks  atomic.Uint64
	fd    int
	table *psnTable
	icrc  uint32 // the ICRC with PSN 0
	size  int
	head  [10]byte // struct virtio_net_hdr: how many bytes are to be linear
	buf   []byte
	iov   []unix.Iovec
	msgs  []mmsghdr

	psn    atomic.Uint32
	count  atomic.Uint64
	waited atomic.Int64 // ns
}

// newPacketGenerator makes one for hosts, of which the first is the source, and for one group.
func newPacketGenerator(c generatorConfig, hosts []lab.Host) (_ *packetGenerator, err error) {
	frame, h := c.groups[0].data, hosts[0]
	g := &packetGenerator{
		cfg: c, fd: -1, size: len(frame), icrc: icrcOf(frame),
		table: newPSNTable(dataOp, len(payloadOf(frame))), ack: newPSNTable(rocev2.Acknowledge, 0),
		buf: make([]byte, 0, burst*len(frame)), iov: make([]unix.Iovec, 2*burst), msgs: make([]mmsghdr, burst),
	}
	// A frame longer than a page has only its Ethernet header in the skb's linear part,
	// unless hdr_len demands more; drivers put all headers there.
	g.head[2] = 128 // hdr_len
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	for i := range c.groups[0].acks {
		t, err := openSender(hosts[i+1])
		if err != nil {
			return nil, err
		}
		g.taps, g.asked = append(g.taps, t), append(g.asked, 0)
	}
	g.fd, err = h.NS.PacketSocket(h.Interface, 0, func(fd int) error {
		return errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1),
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 16<<20))
	})
	if err != nil {
		return nil, fmt.Errorf("make the generator's packet socket: %w", err)
	}
	for i := range burst {
		g.buf = append(g.buf, frame...)
		v := g.iov[2*i : 2*i+2]
		v[0].Base = &g.head[0]
		v[0].SetLen(len(g.head))
		v[1].Base = &g.buf[i*g.size]
		v[1].SetLen(g.size)
		g.msgs[i].hdr.Iov = &v[0]
		g.msgs[i].hdr.SetIovlen(len(v))
	}
	return g, nil
}

func (g *packetGenerator) sent() (generatorTotals, error) {
	return generatorTotals{data: g.count.Load(), acks: g.acks.Load(), waited: time.Duration(g.waited.Load())}, nil
}

func (g *packetGenerator) next(set ...rocev2.PSN) (rocev2.PSN, error) {
	if len(set) > 0 {
		g.psn.Store(uint32(set[0]))
	}
	return rocev2.PSN(g.psn.Load()), nil
}

func (g *packetGenerator) start(p pace) (*thread, error) {
	return onCPU(g.cfg.cpu, func(stopped <-chan struct{}) error {
		interval := time.Duration(min(p.interval(), uint64(time.Hour)))
		due := time.Now()
		if p.rate < 0 {
			due = due.Add(interval)
		}
		for {
			select {
			case <-stopped:
				return nil
			default:
			}
			now := time.Now()
			if now.Before(due) {
				g.waited.Add(int64(spin(due, stopped)))
				continue
			}
			open, err := g.inWindow(p.window)
			if err != nil {
				return err
			}
			if open {
				if due = due.Add(interval); now.Sub(due) > time.Millisecond {
					due = now
				}
				if err := g.send(); err != nil {
					return err
				}
			}
			if err := g.acknowledge(p); err != nil {
				return err
			}
		}
	}), nil
}

// inWindow returns whether the switch has acknowledged so much that another burst may be sent, as in the
// program generate.
func (g *packetGenerator) inWindow(window uint32) (bool, error) {
	if window == 0 {
		return true, nil
	}
	acked, err := lastAt(g.cfg.arrived, 0)
	return acked == psnNone || rocev2.PSN(g.psn.Load()+burst-1).Sub(rocev2.PSN(acked)) <= int32(window), err
}

// spin waits until due or stopped, without sleeping, which would take too long.
func spin(due time.Time, stopped <-chan struct{}) (waited time.Duration) {
	start := time.Now()
	for now := start; ; now = time.Now() {
		select {
		case <-stopped:
			return now.Sub(start)
		default:
		}
		if !now.Before(due) {
			return now.Sub(start)
		}
	}
}

// send sends one burst.
func (g *packetGenerator) send() error {
	psn := rocev2.PSN(g.psn.Load())
	for i := range burst {
		g.table.set(g.buf[i*g.size:(i+1)*g.size], g.icrc, psn)
		psn = psn.Next()
	}
	for at := 0; at < burst; {
		n, _, e := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(g.fd), uintptr(unsafe.Pointer(&g.msgs[at])), uintptr(burst-at), 0, 0, 0)
		switch e {
		case 0:
			at += int(n)
			g.count.Add(uint64(n))
		case unix.EINTR, unix.EAGAIN, unix.ENOBUFS:
		default:
			return fmt.Errorf("send from a packet socket: %w", e)
		}
	}
	g.psn.Store(uint32(psn))
	return nil
}

// acknowledge sends the ACKs that are due, as the program generate does.
func (g *packetGenerator) acknowledge(p pace) error {
	if p.ackEvery == 0 {
		return nil
	}
	for i, t := range g.taps {
		arrived, err := valueAt(g.cfg.arrived, i+1)
		if err != nil {
			return err
		}
		last, acked := rocev2.PSN(arrived.PSN), &g.cfg.groups[0].acked[i]
		for arrived.PSN != psnNone && (last.Sub(*acked) >= int32(p.ackEvery) || arrived.Asked != g.asked[i]) {
			if *acked = acked.Add(int32(p.ackEvery)); last.Sub(*acked) > int32(p.ackJump) || arrived.Asked != g.asked[i] {
				*acked = last
			}
			g.asked[i] = arrived.Asked
			frame := append([]byte(nil), g.cfg.groups[0].acks[i]...)
			g.ack.set(frame, icrcOf(frame), *acked)
			if err := t.send(frame); err != nil {
				return fmt.Errorf("send an ACK: %w", err)
			}
			g.acks.Add(1)
		}
	}
	return nil
}

// Close closes the sockets.
func (g *packetGenerator) Close() error {
	var errs []error
	for _, t := range g.taps {
		errs = append(errs, t.Close())
	}
	if g.fd >= 0 {
		errs = append(errs, unix.Close(g.fd))
	}
	return errors.Join(errs...)
}
