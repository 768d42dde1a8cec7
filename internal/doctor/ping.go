// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// Bounds of what is sent to hosts.
const (
	maxPinged  = 256              // addresses
	pingWait   = time.Second      // the time for the answers of a round
	pingRounds = 2                // a host without an answer gets a second request
	pause      = time.Millisecond // the time between two packets
)

// Headers in front of the data of an echo request.
const (
	icmpLen = 8
	ipv4Len = 20
	ipv6Len = 40
)

// pinger asks hosts by ICMP, by sockets in the namespace of the thread that has made it.
type pinger struct {
	v4, v6  net.PacketConn
	id      int
	answers chan answer
}

// answer is an echo reply, or a timestamp reply with the clock of the host that it is from.
type answer struct {
	from netip.Addr
	seq  int
	skew time.Duration // the lead of its clock, in a timestamp reply
}

// openPinger needs CAP_NET_RAW.
func openPinger() (*pinger, error) {
	p := &pinger{id: os.Getpid() & 0xffff, answers: make(chan answer, 2*maxPinged)}
	var err error
	if p.v4, err = listen("ip4:icmp", "0.0.0.0", unix.IPPROTO_IP, unix.IP_MTU_DISCOVER); err != nil {
		return nil, fmt.Errorf("open a socket for ICMP: %w", err)
	}
	go p.read(p.v4, unix.IPPROTO_ICMP)
	if p.v6, err = listen("ip6:ipv6-icmp", "::", unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER); err != nil {
		p.v6 = nil // a kernel without IPv6
	} else {
		go p.read(p.v6, unix.IPPROTO_ICMPV6)
	}
	return p, nil
}

// listen opens a socket whose packets no router may divide, whatever MTU the kernel knows of.
func listen(network, address string, level, option int) (net.PacketConn, error) {
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		return errors.Join(raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), level, option, unix.IP_PMTUDISC_PROBE)
		}), err)
	}}
	return c.ListenPacket(context.Background(), network, address)
}

func (p *pinger) close() {
	p.v4.Close()
	if p.v6 != nil {
		p.v6.Close()
	}
}

// read passes on answers until the socket is closed.
func (p *pinger) read(c net.PacketConn, protocol int) {
	buf := make([]byte, 1<<16)
	for {
		n, at, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		now := time.Now()
		from, ok := netip.AddrFromSlice(at.(*net.IPAddr).IP)
		a, parsed := p.parse(buf[:n], protocol, now)
		if !ok || !parsed {
			continue
		}
		a.from = from.Unmap()
		select {
		case p.answers <- a:
		default: // more than were asked
		}
	}
}

// parse reads an ICMP message. It is not ok if it is no answer to this pinger.
func (p *pinger) parse(b []byte, protocol int, now time.Time) (a answer, ok bool) {
	m, err := icmp.ParseMessage(protocol, b)
	if err != nil {
		return a, false
	}
	switch m.Type {
	case ipv4.ICMPTypeEchoReply, ipv6.ICMPTypeEchoReply:
		e, ok := m.Body.(*icmp.Echo)
		if !ok || e.ID != p.id {
			return a, false
		}
		a.seq = e.Seq
		return a, true
	case ipv4.ICMPTypeTimestampReply:
		if len(b) < 20 || int(binary.BigEndian.Uint16(b[4:])) != p.id {
			return a, false
		}
		a.seq = int(binary.BigEndian.Uint16(b[6:]))
		a.skew = skew(binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:]), binary.BigEndian.Uint32(b[16:]), sinceMidnight(now))
		return a, true
	}
	return a, false
}

const day = 24 * 60 * 60 * 1000 // ms

// sinceMidnight is the time of RFC 792's timestamps: milliseconds since midnight UTC.
func sinceMidnight(t time.Time) uint32 {
	return uint32(t.UnixMilli() % day)
}

// skew returns how far a host's clock is ahead, by the four times of an exchange (RFC 5905 §8).
func skew(sent, received, replied, back uint32) time.Duration {
	apart := func(a, b uint32) int { // a - b, the shorter way round midnight
		d := (int(a) - int(b)) % day
		switch {
		case d > day/2:
			d -= day
		case d < -day/2:
			d += day
		}
		return d
	}
	return time.Duration(apart(received, sent)+apart(replied, back)) * time.Millisecond / 2
}

// probe is a question to a host.
type probe struct {
	to   netip.Addr
	size int  // the size of the IP packet; 0: as small as can be
	time bool // true: the question is for its clock, over IPv4
}

// ask sends the probes, and returns the answers by their numbers, and the errors of those that
// the kernel did not send.
func (p *pinger) ask(probes []probe) (answers map[int]answer, failed map[int]error) {
	answers, failed = make(map[int]answer), make(map[int]error)
	for range pingRounds {
		waiting := 0
		for i := range probes {
			if _, has := answers[i]; has {
				continue
			}
			if failed[i] = p.send(i, &probes[i]); failed[i] != nil {
				continue
			}
			delete(failed, i)
			waiting++
			time.Sleep(pause)
		}
		timeout := time.After(pingWait)
		for done := waiting == 0; !done; {
			select {
			case a := <-p.answers:
				if _, has := answers[a.seq]; !has && a.seq < len(probes) && probes[a.seq].to == a.from {
					answers[a.seq] = a
					waiting--
				}
				done = waiting == 0
			case <-timeout:
				done = true
			}
		}
	}
	return answers, failed
}

// send sends a probe.
func (p *pinger) send(seq int, x *probe) error {
	c, m, header := p.v4, icmp.Message{Type: ipv4.ICMPTypeEcho}, ipv4Len
	if x.to.Is6() {
		c, m.Type, header = p.v6, ipv6.ICMPTypeEchoRequest, ipv6Len
	}
	if c == nil {
		return errors.New("this kernel has no IPv6")
	}
	if x.time {
		m.Type = ipv4.ICMPTypeTimestamp
		b := make([]byte, 16)
		binary.BigEndian.PutUint16(b, uint16(p.id))
		binary.BigEndian.PutUint16(b[2:], uint16(seq))
		binary.BigEndian.PutUint32(b[4:], sinceMidnight(time.Now()))
		m.Body = &icmp.RawBody{Data: b}
	} else {
		m.Body = &icmp.Echo{ID: p.id, Seq: seq, Data: make([]byte, max(0, x.size-header-icmpLen))}
	}
	b, err := m.Marshal(nil)
	if err != nil {
		return err
	}
	_, err = c.WriteTo(b, &net.IPAddr{IP: x.to.AsSlice(), Zone: x.to.Zone()})
	return err
}
