// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"golang.org/x/sys/unix"

	"github.com/gleam-rdma/gleam/rocev2"
)

const snapLen = 256 // stored bytes of a packet

// grace bounds the time for which a stopped capture reads queued packets.
const grace = 200 * time.Millisecond

// seen is a packet on a host's interface.
type seen struct {
	at   time.Time
	host *host
	sent bool // true: the host has sent it
	data []byte
	len  int
	// The ACK or NAK, if it is one, decoded once because cases wait for them in a loop.
	feedback *feedback
}

// capture listens on hosts' interfaces.
type capture struct {
	mu      sync.Mutex
	packets []seen
	sockets []int
	stopped time.Time // zero while it goes on
	done    sync.WaitGroup
	err     error
}

// listen captures RoCE packets on the interfaces of hosts until stop.
func listen(hosts ...*host) (*capture, error) {
	c := &capture{}
	for _, h := range hosts {
		if err := c.add(h); err != nil {
			_ = c.stop()
			return nil, fmt.Errorf("capture on %s: %w", h.link, err)
		}
	}
	return c, nil
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }

func (c *capture) add(h *host) error {
	link, err := net.InterfaceByName(h.link)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	c.sockets = append(c.sockets, fd)
	// The reader looks from time to time whether it is to stop.
	tick := unix.Timeval{Usec: 100_000}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tick),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: link.Index}),
	)
	if err != nil {
		return err
	}
	c.done.Go(func() { c.read(h, fd) })
	return nil
}

// read stores packets until the socket is shut.
func (c *capture) read(h *host, fd int) {
	buf := make([]byte, 8192)
	for {
		n, from, err := unix.Recvfrom(fd, buf, 0)
		c.mu.Lock()
		stopped := c.stopped
		c.mu.Unlock()
		if !stopped.IsZero() && time.Since(stopped) > grace {
			return // endless traffic must not keep the capture open
		}
		switch {
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
			if !stopped.IsZero() {
				return
			}
			continue
		case err != nil:
			c.mu.Lock()
			c.err = errors.Join(c.err, err)
			c.mu.Unlock()
			return
		}
		ll, ok := from.(*unix.SockaddrLinklayer)
		p := seen{at: time.Now(), host: h, len: n, data: append([]byte(nil), buf[:min(n, snapLen)]...)}
		p.sent = ok && ll.Pkttype == unix.PACKET_OUTGOING
		p.feedback = feedbackOf(p.data, p.sent)
		c.mu.Lock()
		c.packets = append(c.packets, p)
		c.mu.Unlock()
	}
}

// stop ends the capture, after the queued packets.
func (c *capture) stop() error {
	c.mu.Lock()
	fds := c.sockets
	c.sockets, c.stopped = nil, time.Now()
	c.mu.Unlock()
	c.done.Wait()
	for _, fd := range fds {
		c.err = errors.Join(c.err, unix.Close(fd))
	}
	return c.err
}

// feedback is an ACK or NAK.
type feedback struct {
	psn      rocev2.PSN
	dest     rocev2.QPN
	syndrome rocev2.Syndrome
	sent     bool // true: the host has sent it
}

func feedbackOf(data []byte, sent bool) *feedback {
	var f rocev2.Frame
	if rocev2.Decode(data, &f) != rocev2.OK || f.Kind != rocev2.KindRoCE || f.Op != rocev2.Acknowledge {
		return nil
	}
	return &feedback{psn: f.BTH().PSN(), dest: f.BTH().DestQP(), syndrome: f.AETH().Syndrome(), sent: sent}
}

// feedbackAt returns the ACKs and NAKs seen at h so far.
func (c *capture) feedbackAt(h *host) (all []feedback) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.packets {
		if p := &c.packets[i]; p.host == h && p.feedback != nil {
			all = append(all, *p.feedback)
		}
	}
	return all
}

// captureTo writes all hosts' packets into a file when it is stopped.
func (b *bench) captureTo(file string) (stop func() error, err error) {
	return captureOf(file, b.everyone()...)
}

// captureOf writes the packets of some hosts into a file when it is stopped.
func captureOf(file string, hosts ...*host) (stop func() error, err error) {
	c, err := listen(hosts...)
	if err != nil {
		return nil, err
	}
	return func() error {
		err := c.stop()
		f, e := os.Create(file)
		if e != nil {
			return errors.Join(err, e)
		}
		w := pcapgo.NewWriter(f)
		err = errors.Join(err, w.WriteFileHeader(snapLen, layers.LinkTypeEthernet))
		for _, p := range c.packets {
			err = errors.Join(err, w.WritePacket(gopacket.CaptureInfo{Timestamp: p.at, CaptureLength: len(p.data), Length: p.len}, p.data))
		}
		return errors.Join(err, f.Close())
	}, nil
}
