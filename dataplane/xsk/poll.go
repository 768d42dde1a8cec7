// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// SocketPoller is the Poller of sockets. It belongs to the goroutine that owns them,
// except for Wake.
type SocketPoller struct {
	socks []*Socket
	wake  int           // an eventfd
	fds   []unix.PollFd // the descriptors of socks, followed by wake
	ts    unix.Timespec
}

// NewPoller returns a SocketPoller for socks.
func NewPoller(socks []*Socket) (*SocketPoller, error) {
	wake, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make the eventfd that ends a poll of AF_XDP sockets: %w", err)
	}
	p := &SocketPoller{wake: wake}
	queues := make([]BoundQueue, len(socks))
	for i, s := range socks {
		queues[i] = s
	}
	p.SetQueues(queues)
	return p, nil
}

// SetQueues implements Poller.
func (p *SocketPoller) SetQueues(queues []BoundQueue) {
	p.socks, p.fds = nil, nil
	for _, q := range queues {
		s := q.(*Socket)
		p.socks = append(p.socks, s)
		p.fds = append(p.fds, unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN})
	}
	p.fds = append(p.fds, unix.PollFd{Fd: int32(p.wake), Events: unix.POLLIN})
}

// Wait implements Poller; it also returns at a signal. It makes the kernel send the
// packets that Kick left in the TX rings. It allocates nothing.
//
// Sockets that were closed, or whose interface is known to be gone, are skipped. An
// interface that vanishes does not end a Wait: see Socket.State.
func (p *SocketPoller) Wait(timeout time.Duration) (woken bool, err error) {
	ts := &p.ts
	if timeout < 0 {
		ts = nil
	} else {
		p.ts = unix.NsecToTimespec(int64(timeout))
	}
	for i, s := range p.socks {
		if s.fd < 0 || s.gone.Load() {
			p.fds[i].Fd = -1
		}
	}
	n, err := unix.Ppoll(p.fds, ts, nil)
	if err == unix.EINTR {
		return false, nil
	}
	if err != nil || n == 0 {
		return false, err
	}
	for i, s := range p.socks {
		if p.fds[i].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0 {
			s.gone.Store(true)
		}
	}
	if p.fds[len(p.socks)].Revents&unix.POLLIN == 0 {
		return false, nil
	}
	var count [8]byte
	_, _ = unix.Read(p.wake, count[:])
	return true, nil
}

// Wake implements Poller.
func (p *SocketPoller) Wake() {
	one := [8]byte{0: 1}
	_, _ = unix.Write(p.wake, one[:]) // EAGAIN: a wakeup is pending already
}

// Close closes the eventfd. The sockets stay open.
func (p *SocketPoller) Close() error { return unix.Close(p.wake) }
