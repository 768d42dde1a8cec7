// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/lab"
	"github.com/gleam-rdma/gleam/mcast"
	"github.com/gleam-rdma/gleam/rocev2"
)

const (
	ackEvery = 16               // packets of a group for each ACK of a receiver
	mixed    = 32               // groups whose packets alternate: a power of 2; on the fast path a quarter, since two blocks are on their way, and no RNIC sends more
	inFlight = 384              // packets on their way to the receivers: less than any ring of the sockets
	veths    = 192              // likewise, and less than a ring of a veth, where copies by XDP are
	patience = 20 * time.Second // a busy machine may leave gleamd without a CPU for seconds
	askAfter = 2 * time.Millisecond
)

// pump sends the source's data packets and the receivers' ACKs, by packet sockets.
type pump struct {
	opts    *Options
	sinks   *sinks
	hosts   []lab.Host
	sockets []int // the sockets of the hosts
	ports   []rocev2.MAC
	payload []byte
	frame   []byte
	sent    uint64 // data packets since the sinks were made
	mixed   int
	flight  int
	at      int      // groups so far
	open    []*group // groups with packets that are not acknowledged
	last    []*group // groups that the receivers have acknowledged last
	asked   int      // NAKs that receivers have sent
}

// newPump opens the sockets. Every host sends to the MAC address of its port.
func newPump(o *Options, s *sinks, star *lab.Star) (_ *pump, err error) {
	p := &pump{opts: o, sinks: s, hosts: star.Hosts, payload: make([]byte, o.Payload), frame: make([]byte, 2048), mixed: mixed, flight: inFlight}
	if o.FastPath {
		p.mixed, p.flight = mixed/4, veths
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	for _, h := range star.Hosts {
		fd, err := h.NS.PacketSocket(h.Interface, 0, func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1) })
		if err != nil {
			return nil, err
		}
		p.sockets = append(p.sockets, fd)
		port, err := star.Switch.Handle().LinkByName(h.Port)
		if err != nil {
			return nil, fmt.Errorf("port %s: %w", h.Port, err)
		}
		p.ports = append(p.ports, rocev2.MAC(port.Attrs().HardwareAddr))
	}
	return p, nil
}

func (p *pump) close() error {
	var errs []error
	for _, fd := range p.sockets {
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}

// send sends a packet of host i into a group.
func (p *pump) send(g *group, i int, k *rocev2.Packet, payload []byte) error {
	path := rocev2.Path{SrcMAC: rocev2.MAC(p.hosts[i].MAC), DstMAC: p.ports[i], Src: p.hosts[i].IPv6, Dst: g.ip, SrcPort: 0xC001}
	k.DestQP = mcast.DefaultQPN
	n := rocev2.BuildPacket(p.frame, &path, k, payload)
	_, err := unix.Write(p.sockets[i], p.frame[:n])
	for errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENOBUFS) {
		_, err = unix.Write(p.sockets[i], p.frame[:n])
	}
	if err != nil {
		return fmt.Errorf("host %s sends: %w", p.hosts[i].Name, err)
	}
	return nil
}

// data sends the next packet of a group.
func (p *pump) data(g *group) error {
	if err := p.await(p.sent - min(p.sent, uint64(p.flight))); err != nil {
		return err
	}
	psn := g.members[0].SQPSN.Add(int32(g.next))
	g.next++
	p.sent++
	return p.send(g, 0, &rocev2.Packet{Op: op, PSN: psn, AckReq: g.next%ackEvery == 0}, p.payload)
}

// acknowledge has all receivers acknowledge the first n packets of a group.
func (p *pump) acknowledge(g *group, n uint32) error {
	for i := 1; i < len(p.hosts); i++ {
		psn := g.members[i].RQPSN.Add(int32(n)).Prev()
		if err := p.send(g, i, &rocev2.Packet{Op: rocev2.Acknowledge, PSN: psn, Syndrome: rocev2.SyndromeACK}, nil); err != nil {
			return err
		}
	}
	return nil
}

// await waits until every receiver has n packets. It spins: the pump has a core for itself.
func (p *pump) await(n uint64) error {
	if p.sinks.least() >= n {
		return nil
	}
	begin, asked := time.Now(), time.Duration(0)
	for p.sinks.least() < n {
		switch waited := time.Since(begin); {
		case waited > patience:
			return fmt.Errorf("%d packets sent, and the receivers have %v after %v: packets were lost", p.sent, p.sinks.each(), patience)
		case p.opts.FastPath && waited > asked+askAfter:
			asked = waited
			if err := p.ask(); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask has the receivers that have got a packet behind a gap ask for what they lack, as queue pairs do at once: copies by XDP and those of the
// worker may come in another order where a host's interface is served late.
func (p *pump) ask() error {
	for _, g := range p.open {
		for i := 1; i < len(p.hosts); i++ {
			next, last, ok := p.sinks.next(g.members[i].QPN, i)
			if !ok || !next.Less(last) {
				continue
			}
			p.asked++
			if err := p.send(g, i, &rocev2.Packet{Op: rocev2.Acknowledge, PSN: next, Syndrome: rocev2.SyndromeNAKSequence}, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// block is packets that are sent and not acknowledged yet.
type block struct {
	groups []*group
	end    uint64 // the packets sent with it
}

// run sends packets to the groups in turn for a time, and to at least a number of groups. It returns how many a second
// every receiver got. All have been acknowledged in the end.
func (p *pump) run(ctx context.Context, groups []*group, d time.Duration, least int) (perSecond float64, err error) {
	// Blocks have the same numbers of packets and ACKs whatever the number of groups.
	width := p.mixed
	for width > len(groups) {
		width /= 2
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var last *block
	begin, first := time.Now(), p.sinks.least()
	for n := 0; n < least || time.Since(begin) < d; n += width {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		b := &block{}
		for i := range width {
			b.groups = append(b.groups, groups[(p.at+i)%len(groups)])
		}
		p.at += width // the next run goes on there: what is in a cache is of the groups just before
		if p.open = append(p.open[:0], b.groups...); last != nil {
			p.open = append(p.open, last.groups...)
		}
		for i := range p.mixed * ackEvery {
			g := b.groups[i%width]
			if err := p.data(g); err != nil {
				return 0, err
			}
		}
		b.end = p.sent
		if err := p.finish(last); err != nil {
			return 0, err
		}
		last = b
	}
	got, took := p.sinks.least()-first, time.Since(begin)
	if err := p.finish(last); err != nil || !p.opts.FastPath {
		return float64(got) / took.Seconds(), err
	}
	return float64(got) / took.Seconds(), p.answered() // gleamd has counted all
}

// haveAll reports whether all receivers have a block: others' packets may have been counted in the place of one that comes
// late.
func (p *pump) haveAll(b *block, each uint32) bool {
	for _, g := range b.groups {
		for i := 1; i < len(p.hosts); i++ {
			if next, _, ok := p.sinks.next(g.members[i].QPN, i); !ok || next.Less(g.members[i].RQPSN.Add(int32(g.acked+each))) {
				return false
			}
		}
	}
	return true
}

// answered waits until the source has got the ACKs of what the receivers have acknowledged, as a queue pair does whose
// window is that: copies by XDP do not wait for gleamd.
func (p *pump) answered() error {
	for begin := time.Now(); ; {
		open := slices.ContainsFunc(p.last, func(g *group) bool {
			next, _, ok := p.sinks.next(g.members[0].QPN, 0)
			return !ok || next.Less(g.members[0].SQPSN.Add(int32(g.acked)))
		})
		if !open {
			return nil
		}
		if time.Since(begin) > patience {
			return fmt.Errorf("the source has no ACK of a block after %v", patience)
		}
	}
}

// finish waits until a block has arrived, and acknowledges it.
func (p *pump) finish(b *block) error {
	if b == nil {
		return nil
	}
	if err := p.await(b.end); err != nil {
		return err
	}
	each := uint32(p.mixed * ackEvery / len(b.groups)) // packets of each group
	if p.opts.FastPath {
		if err := p.answered(); err != nil {
			return err
		}
		p.last = append(p.last[:0], b.groups...)
	}
	begin, asked := time.Now(), time.Duration(0)
	for p.opts.FastPath && !p.haveAll(b, each) {
		switch waited := time.Since(begin); {
		case waited > patience:
			return fmt.Errorf("receivers lack packets of a block after %v", patience)
		case waited > asked+askAfter:
			asked = waited
			if err := p.ask(); err != nil {
				return err
			}
		}
	}
	for n := uint32(ackEvery); n <= each; n += ackEvery {
		for _, g := range b.groups {
			if err := p.acknowledge(g, g.acked+n); err != nil {
				return err
			}
		}
	}
	for _, g := range b.groups {
		g.acked += each
	}
	return nil
}
